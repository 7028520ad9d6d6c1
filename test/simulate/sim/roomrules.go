package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

// roomRules look at who is given room, and who has to go for it: the rules of package
// capacity once more, by what happened.
type roomRules struct {
	// looked is when the workers were looked at last.
	looked time.Duration
	// launched are the times of the last orders.
	launched []time.Time
	// held is the worker on which an instance was evicted for a function, for as long as
	// its room is reserved.
	held map[string]string
	// room is where an instance was evicted just now.
	room string
	// used is what the functions of each namespace used when that was last gathered, and
	// total the sum.
	used  map[string]int64
	total int64
	// lent is what is to be made for others.
	lent map[capacity.Loan]int
	// lacks is for how many first instances of each shape room could not be made.
	lacks map[capacity.Shape]int
	// asked is for how many instances of each shape room is asked of each peer, and when
	// it was.
	asked map[string]map[capacity.Shape]int
	when  map[string]time.Duration
}

// placed looks whether a worker has room for an instance, as far as the scheduler could
// know, and whether it orders too fast.
func (r *roomRules) placed(p *placer, f *served, at *worker) {
	w := p.scheduler.world
	left := at.cores.Minus(p.scheduler.requested(r.looked)[at.index(w)]).Minus(f.fn.requests).MilliCPU
	if left < 0 {
		w.violate(RuleWithinRoom, 0)
	}
	for uid, worker := range r.held {
		if worker == at.name && uid != f.fn.uid && p.planner.Reserved(uid) > 0 {
			left -= p.scheduler.of(uid).fn.requests.MilliCPU
		}
	}
	if left < 0 {
		w.violate(RuleReservedIsKept, 0)
	}
}

// orders notes that an instance is launched.
func (r *roomRules) orders(p *placer) {
	now := p.scheduler.now()
	for len(r.launched) > 0 && now.Sub(r.launched[0]) >= time.Second {
		r.launched = r.launched[1:]
	}
	if r.launched = append(r.launched, now); len(r.launched) > orderBurst+orderRate {
		p.broken(RuleWithinBudget)
	}
}

// gathered notes what is used now.
func (r *roomRules) gathered(p *placer) {
	r.used, r.total = make(map[string]int64), 0
	for _, f := range p.scheduler.served {
		for _, e := range f.inventory.entries {
			if !e.leaving {
				r.used[f.fn.namespace] += f.fn.requests.MilliCPU
				r.total += f.fn.requests.MilliCPU
			}
		}
	}
}

// evicts looks whether an instance may have to go for a function.
func (r *roomRules) evicts(p *placer, w capacity.Want, e capacity.Evict) {
	long := e.For >= capacity.DefaultEvictAfter
	share := r.used[w.Namespace]+w.Requests.MilliCPU <= r.total/int64(max(1, len(r.used)))
	switch {
	case e.FunctionUID == w.UID:
		p.broken(RuleNotForItself)
	case e.Spare:
	case r.spareWouldDo(p, w.Requests):
		p.broken(RuleSparesFirst)
	case !long && !(w.Starved && w.Waiting > 0 && e.For <= w.OldestWait):
		p.broken(RuleEvictedIfIdle)
	case !(w.Starved && w.Waiting > 0) && e.Namespace != w.Namespace && !share:
		p.broken(RuleWithinShare)
	}
	r.room = e.Node
	r.goes(p, e)
}

// evictsFor is evicts for a function of a peer.
func (r *roomRules) evictsFor(p *placer, a capacity.Request, e capacity.Evict) {
	if e.For < capacity.DefaultEvictAfter && e.For > a.Waited {
		p.broken(RuleEvictedIfIdle)
	}
	r.goes(p, e)
}

// lends looks whether room is made for a function of a peer.
func (r *roomRules) lends(p *placer, f *served, a capacity.Request, made capacity.Grant) {
	able := made.Instances < a.Instances && !p.scheduler.world.full && len(p.planner.Reserving()) == 0
	held := p.planner.HeldBack(capacity.Beneficiary{Loan: capacity.Loan{Peer: a.Peer, Shape: a.Shape}}, p.scheduler.now())
	if !able || held || p.scheduler.mayGoFor(f, capacity.DefaultEvictAfter) == nil {
		f.inVain = 0
		return
	}
	if f.inVain++; f.inVain > inVainTicks {
		p.broken(RuleRoomIsMade)
	}
}

// goes looks whether an instance was to go already.
func (r *roomRules) goes(p *placer, e capacity.Evict) {
	of := &p.scheduler.spares.inventory
	if f := p.scheduler.of(e.FunctionUID); f != nil {
		of = &f.inventory
	}
	if known := of.find(e.CID); known != nil && known.evicted {
		p.broken(RuleEvictedOnce)
	}
}

// made looks at how much room is reserved.
func (r *roomRules) made(p *placer, w capacity.Want, before int) {
	reserved := p.planner.Reserved(w.UID)
	if reserved > w.Missing {
		p.broken(RuleReservesWhatLacks)
	}
	switch {
	case reserved <= before:
	case r.room == "":
		delete(r.held, w.UID)
	default:
		if r.held == nil {
			r.held = make(map[string]string)
		}
		r.held[w.UID] = r.room
	}
	r.room = ""
	if reserved > before {
		r.promised(p)
	}
}

// promised looks whether more room is reserved than there will be once all that were let
// go have gone. Others may take what is reserved here, so that only one who is alone knows.
func (r *roomRules) promised(p *placer) {
	w := p.scheduler.world
	if len(w.schedulers) > 1 || w.full {
		return
	}
	left, evicted := int64(0), p.planner.Leaving()
	for i, requested := range p.scheduler.requested(w.now) {
		left += w.workers[i].cores.Minus(requested).MilliCPU
	}
	for _, f := range p.scheduler.all() {
		left -= int64(p.planner.Reserved(f.fn.uid)) * f.fn.requests.MilliCPU
		for _, e := range f.inventory.entries {
			// One that was evicted, and then taken over again, goes all the same.
			if e.leaving || slices.Contains(evicted, capacity.Key{FunctionUID: f.fn.uid, CID: e.in.cid}) {
				left += f.fn.requests.MilliCPU
			}
		}
	}
	for _, e := range p.scheduler.spares.inventory.entries {
		if e.leaving {
			left += pooled.MilliCPU
		}
	}
	if left < 0 {
		p.broken(RuleReservedIsKept)
	}
}

// has tells whether a worker has room for a function's instance now, which is reserved for
// nobody else.
func (p *placer) has(f *served) bool {
	if p.planner.Reserved(f.fn.uid) < len(p.planner.Reserving()) || len(p.rules.lent) > 0 {
		return false
	}
	w := p.scheduler.world
	for i, requested := range p.scheduler.requested(w.now) {
		if w.workers[i].cores.Minus(requested).Minus(f.fn.requests).MilliCPU >= 0 {
			return true
		}
	}
	return false
}

// known compares what is known of the instances with what all of them amount to.
func (r *roomRules) known(p *placer) {
	now := p.scheduler.now()
	p.handInUsage(now)
	usages, fresh := make(map[string]capacity.Usage), capacity.New(capacity.Config{})
	for _, f := range p.scheduler.all() {
		usages[f.fn.uid] = f.usage(now)
	}
	usages[p.scheduler.spares.unit.uid] = p.scheduler.spares.usage()
	fresh.Update(usages)
	if !slices.Equal(p.planner.Lines(), fresh.Lines()) {
		p.broken(RuleUsageIsKnown)
	}
}

// asks looks whether more room is asked of all peers together than is lacked.
func (r *roomRules) asks(p *placer, peer string, lacks []capacity.Shortage) {
	if len(lacks)+len(r.asked) == 0 {
		return
	}
	if r.asked == nil {
		r.asked, r.when = make(map[string]map[capacity.Shape]int), make(map[string]time.Duration)
	}
	now := p.scheduler.world.now
	r.when[peer], r.asked[peer] = now, make(map[capacity.Shape]int)
	for _, l := range lacks {
		r.asked[peer][l.Shape] = l.Instances
		all := 0
		for other, asked := range r.asked {
			if r.when[other] == now {
				all += asked[l.Shape]
			}
		}
		if all > r.lacks[l.Shape] {
			p.broken(RuleAsksWhatLacks)
		}
	}
}

// givesUp looks whether room could have been made for a function whose calls are refused.
func (r *roomRules) givesUp(p *placer, f *served) {
	if p.scheduler.mayGoFor(f, patience) != nil {
		p.broken(RuleRefusedForAReason)
	}
}

// spareWouldDo tells whether a spare instance could go in place of another function's. What
// is reserved here or lent may be in the way.
func (r *roomRules) spareWouldDo(p *placer, want placement.Amount) bool {
	if len(p.planner.Reserving())+len(r.lent) > 0 {
		return false
	}
	s := p.scheduler
	requested := s.requested(r.looked)
	for _, e := range s.spares.present() {
		at := e.in.worker
		left := at.cores.MilliCPU - requested[at.index(s.world)].MilliCPU
		if left >= 0 && left+pooled.MilliCPU >= want.MilliCPU {
			return true
		}
	}
	return false
}

func (p *placer) broken(rule Rule) { p.scheduler.world.violate(rule, 0) }

// mayGoFor is an instance of another function that has been idle here for so long, and
// would alone make room for one of this; nil if there is none.
func (s *scheduler) mayGoFor(f *served, idleFor time.Duration) *entry {
	now, requested := s.now(), s.requested(s.world.now)
	for _, other := range s.served {
		if other == f || !other.serving() {
			continue
		}
		idle, _ := other.core.Evictable(now, 0)
		for _, i := range idle {
			e := other.inventory.find(i.CID)
			if i.Idle < idleFor || e == nil || e.leaving || !e.pulled || !e.connected {
				continue
			}
			at := e.in.worker
			left := requested[at.index(s.world)].MilliCPU - other.fn.requests.MilliCPU
			if left+f.fn.requests.MilliCPU <= at.cores.MilliCPU {
				return e
			}
		}
	}
	return nil
}

// inVainTicks is for how many ticks a function may want for room that could be made.
const inVainTicks = 10

// ticked looks whether room is made for a function that has calls and no instance, and, where
// spare instances would make it, for any that lacks some.
func (r *roomRules) ticked(p *placer, c *considered) {
	f, reserved := c.served, p.planner.Reserved(c.served.fn.uid) > 0
	starves := c.starved() && c.Snapshot.Waiting() > 0 &&
		(p.has(f) || !reserved && p.scheduler.mayGoFor(f, capacity.DefaultEvictAfter) != nil)
	lacks := !reserved && c.missing() > 0 && r.spareWouldDo(p, f.fn.requests)
	held := p.planner.HeldBack(capacity.Beneficiary{Function: f.fn.uid}, p.scheduler.now())
	if !c.noRoom || p.scheduler.world.full || held || !starves && !lacks {
		f.inVain = 0
		return
	}
	if f.inVain++; f.inVain > inVainTicks {
		p.broken(RuleRoomIsMade)
	}
}
