package capacity

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// candidates are the instances that may be evicted in one tick. They come from the usage
// index, once for all functions with a shortage.
type candidates struct {
	gathered  bool
	idle      []placement.Idle
	instances []*Idle // of the same index in idle
	gone      []bool
	// clearings are by the Where of the functions that ask.
	clearings map[string]*placement.EvictionPlanner
	// shortages is room for first instances that could not be made.
	shortages map[Shape]*Shortage
}

// Due returns the functions whose usage has to be updated because a time has come.
func (p *Planner) Due(now time.Time) []string { return p.index.timers.Due(now) }

// Update replaces the usage of functions that are due or have changed since the last call; of
// all functions at first, and after Invalidate.
func (p *Planner) Update(usages map[string]Usage) {
	p.changed = append(p.changed, p.index.update(usages)...)
}

// Invalidate drops all usage, so that a change that was not recorded is corrected when all
// usage is read again.
func (p *Planner) Invalidate() { p.index, p.changed = newUsageIndex(), nil }

// Lines writes all usage as lines that can be compared.
func (p *Planner) Lines() []string { return p.index.lines() }

// Gathered reports whether Gather was called in this tick.
func (p *Planner) Gathered() bool { return p.candidates.gathered }

// Gather collects the instances that may be evicted now. A tick that makes room calls it once
// before that.
func (p *Planner) Gather(now time.Time) {
	changed, r, known := p.changed, p.index, &p.candidates
	if forgot := p.moves.beginTick(now, p.config.Tick); forgot {
		changed = r.idle
	}
	p.changed = nil
	known.gathered, known.clearings = true, make(map[string]*placement.EvictionPlanner)
	known.idle, known.instances = make([]placement.Idle, 0, len(r.idle)), make([]*Idle, 0, len(r.idle))
	for _, i := range r.idle {
		if idle := i.idleFor(now); idle > 0 {
			known.idle = append(known.idle, placement.Idle{Node: i.Node, Requests: i.Requests, For: idle, Group: i.group()})
			known.instances = append(known.instances, i)
		}
	}
	known.gone = make([]bool, len(known.idle))
	for _, i := range changed {
		if !i.Spare {
			p.moves.markMoved(i.Node, i.Since)
		}
	}
	for _, nodes := range r.moving {
		for _, node := range nodes {
			p.moves.markMoved(node, now)
		}
	}
}

// Evict is an instance to evict.
type Evict struct {
	*Idle
	// For is how long it has been idle. It must not have been needed since.
	For time.Duration
}

// Evictor evicts an instance if that is still allowed, and reports whether it did.
type Evictor func(Evict) (evicted bool)

// MakeRoom reserves room for instances of a function that found none, and has idle instances
// of other functions evicted for it (FPCSch IV-C): as many spare ones as needed, and others
// for one instance at a time. It returns true if calls wait for the function's first instance
// without prospect: there is no room for it, and nothing has changed for long on the nodes
// where there could be.
//
// For a function that has calls and no instance it evicts any instance that it may, as soon as
// one has become idle after the function's own call came. For a function that only lacks further
// instances, or whose first one no call waits for (a minimum, the proof of a revision), it evicts
// instances that were idle for EvictAfter: of its own namespace, and of other namespaces while its
// own uses less than an equal share of what the functions of this scheduler use. Otherwise a
// namespace with many calls, minimums or new revisions would displace, instance by instance, what
// others keep for their next call.
//
// If somebody outside takes the room, nothing more is evicted for a while, which doubles each time.
// Calls wait meanwhile.
func (p *Planner) MakeRoom(w Want, now time.Time, evict Evictor) (unplaceable bool) {
	p.observeMoves(w.Where, now)
	reserved := p.Reserved(w.UID)
	for reserved < w.Missing && p.makeRoomForOne(&w, reserved > 0, now, evict) {
		reserved++
	}
	waited := Waited(w.Starved, w.Waiting, w.OldestWait)
	if reserved > 0 || waited == 0 {
		return false
	}
	p.shortage(w.Shape, w.UID, waited)
	return !p.HeldBack(Beneficiary{Function: w.UID}, now) && waited >= p.config.Patience && p.quietFor(w.Shape, now) >= p.config.Patience
}

// makeRoomForOne reserves room for one more instance of a function, which may have some
// reserved already.
func (p *Planner) makeRoomForOne(w *Want, has bool, now time.Time, evict Evictor) bool {
	ask := placement.EvictionRequest{Want: w.Requests, Group: spareGroup, IdleFor: p.config.EvictAfter}
	if p.config.Spares && p.reserveFor(w, ask, now, evict) {
		return true
	}
	if has || !w.Starved && w.Waiting == 0 {
		return false
	}
	ask.Group = ""
	switch {
	case w.Starved && w.Waiting > 0:
		ask.Waited = w.OldestWait
	case !p.underShare(w):
		ask.Group = w.Namespace
	}
	return p.reserveFor(w, ask, now, evict)
}

// reserveFor reserves room for one more instance of a function if a node has it or evictions
// can make it.
func (p *Planner) reserveFor(w *Want, ask placement.EvictionRequest, now time.Time, evict Evictor) bool {
	of := Beneficiary{Function: w.UID}
	node, ok := p.findNode(of, w.Where, ask, now, evict)
	if ok {
		h := p.holders[w.UID]
		if h == nil {
			h = &holder{Beneficiary: of}
			p.holders[w.UID] = h
		}
		p.reserve(h, node, ask.Want)
	}
	return ok
}

// reserve reserves room, which no other function gets in this tick.
func (p *Planner) reserve(h *holder, node string, amount placement.Amount) {
	p.addReservation(h, node, amount)
	for _, clearing := range p.candidates.clearings {
		clearing.Reserve(node, amount)
	}
}

// underShare reports whether a function's namespace would have at most an equal share with one
// more instance.
func (p *Planner) underShare(w *Want) bool {
	r := p.index
	return r.used[w.Namespace]+max(1, w.Requests.MilliCPU) <= r.total/int64(max(1, len(r.used)))
}

// findNode finds a node with the requested room, now or after evictions, which it carries out.
// It evicts no instances of the function itself. The caller then reserves the room.
func (p *Planner) findNode(of Beneficiary, where string, ask placement.EvictionRequest, now time.Time, evict Evictor) (node string, ok bool) {
	known := &p.candidates
	for {
		node, out, ok := p.clearing(where).Find(ask)
		if !ok || len(out) > 0 && !p.lapses.mayEvict(of, now) {
			return "", false
		}
		for _, i := range out {
			one := known.instances[i]
			evicted := one.FunctionUID != of.Function && evict(Evict{one, known.idle[i].For})
			if evicted {
				p.markLeaving(one, now)
			}
			known.gone[i] = true
			for _, clearing := range known.clearings {
				clearing.MarkGone(i, evicted)
			}
			ok = ok && evicted
		}
		if ok {
			if len(out) == 0 {
				p.lapses.notTaken(of)
			}
			return node, true
		}
	}
}

// clearing is the nodes as they will be once all that were evicted have gone.
func (p *Planner) clearing(where string) *placement.EvictionPlanner {
	known := &p.candidates
	c := known.clearings[where]
	if c == nil {
		nodes := p.site(where).Nodes()
		for i := range nodes {
			nodes[i].Requested = nodes[i].Requested.Minus(p.freed[nodes[i].Name])
		}
		c = placement.NewEvictionPlanner(nodes, known.idle)
		for i, gone := range known.gone {
			if gone {
				c.MarkGone(i, false) // it is among those that were evicted
			}
		}
		known.clearings[where] = c
	}
	return c
}

// shortage records that room for a first instance could not be made.
func (p *Planner) shortage(of Shape, uid string, waited time.Duration) {
	known := &p.candidates
	if known.shortages == nil {
		known.shortages = make(map[Shape]*Shortage)
	}
	l := known.shortages[of]
	if l == nil {
		l = &Shortage{Shape: of}
		known.shortages[of] = l
	}
	if l.Instances++; waited > l.Waited {
		l.UID, l.Waited = uid, waited
	}
}

// Shortages is all room for first instances that could not be made in this tick.
func (p *Planner) Shortages() (shortages []Shortage) {
	for _, l := range p.candidates.shortages {
		shortages = append(shortages, *l)
	}
	return shortages
}
