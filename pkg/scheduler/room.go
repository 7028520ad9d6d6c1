package scheduler

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// placer tells a capacity.Planner what it needs to know, and carries out what it decides.
// Only Run's goroutine uses it.
type placer struct {
	planner   *capacity.Planner
	instances Instances
	functions *functions
	dirty     *dirtySet
	peers     *peerRoom
	starts    *starts
	spares    *spares
	cores     cores
	// pools says that there may be spare instances, and patience is the configuration's
	// NoRoomPatience.
	pools    bool
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time
}

// cores brings events to the cores of functions.
type cores interface {
	step(f *function, e core.Event)
	stepLocked(f *function, e core.Event) []core.Effect
}

func newPlacer(s *host, spares *spares, peers *peerRoom) *placer {
	c, pools := s.config, s.deps.Runtimes != nil
	return &placer{
		planner:   capacity.New(capacity.Config{Tick: c.Tick, EvictAfter: c.EvictAfter, Patience: c.NoRoomPatience, Spares: pools}),
		instances: s.deps.Instances, functions: s.functions, dirty: s.dirty, peers: peers,
		starts: s.starts, spares: spares, cores: s,
		pools: pools, patience: c.NoRoomPatience, log: s.deps.Log, now: s.deps.Now,
	}
}

// whereOf names the nodes on which a function's instances may run; it is empty for a
// function that may run on every ordinary node. Namespaces have no bound of their own:
// they share what is ordered, and a quota of theirs is known to the API server only.
func whereOf(fn *v1alpha1.Function) string {
	if len(fn.Spec.Template.Placement.NodeSelector) == 0 && len(fn.Spec.Template.Placement.Tolerations) == 0 {
		return ""
	}
	// What was read from JSON can be written.
	text, _ := json.Marshal([]any{fn.Spec.Template.Placement.NodeSelector, fn.Spec.Template.Placement.Tolerations})
	return string(text)
}

// shapeOf is what the room for an instance of a function depends on.
func shapeOf(fn *v1alpha1.Function, nodes NodeView) capacity.Shape {
	return capacity.Shape{Requests: nodes.Requests(fn), Where: whereOf(fn)}
}

// shape is that of a unit, of whose nodes the planner knows from then on.
func (p *placer) shape(u *unit) capacity.Shape {
	if !p.planner.Observed(u.shape.Where) {
		p.planner.Observe(u.shape.Where, p.instances.Candidates(u.fn))
	}
	return u.shape
}

// room is for how many more instances of a unit there is room on the nodes.
func (p *placer) room(u *unit) int { return p.planner.Room(p.shape(u)) }

// launch orders up to n instances on nodes that have room, first of all where some is
// reserved for the function; and says why they are fewer if that is for want of room. The
// UID is empty for a pool.
func (p *placer) launch(uid string, u *unit, term invocation.Term, n int) (ordered provisioner.LaunchResult) {
	of := p.shape(u)
	ordered.Keys = p.instances.LaunchOn(u.fn, term, n, func() (string, bool) {
		node, ok := p.planner.Place(uid, of, rand.IntN)
		if !ok {
			ordered.NoRoom = p.planner.Explain(of)
		}
		return node, ok
	})
	return ordered
}

// beginTick begins a tick of the planner, and reports evicted instances that have gone.
func (p *placer) beginTick(now time.Time) {
	for _, key := range p.planner.Leaving() {
		if _, there := p.instances.Lookup(provisioner.Key(key)); !there {
			p.planner.Left(key)
		}
	}
	for _, uid := range p.planner.Reserving() {
		if f := p.functions.lookup(uid); f == nil || !f.served() {
			p.planner.Trim(uid, 0)
		}
	}
	p.planner.BeginTick(now)
}

// handleShortage makes room for launches that could not be placed. If it cannot, other
// schedulers are asked for room, and calls that wait for a first instance go on waiting as
// long as room may come free: they are refused once nothing has moved for a while on the
// nodes where the room would be, and no other scheduler grants any.
func (p *placer) handleShortage(c *evaluation) {
	f, now := c.function, p.now()
	p.blockRefill(now)
	if reserved := p.planner.Reserved(f.uid); reserved > 0 && reserved >= c.missing() {
		return
	}
	p.gather(now)
	w := c.want()
	inVain := p.planner.MakeRoom(w, now, p.evictorFor(c.fn))
	if inVain && !p.peers.mayGrant(w.Shape, now) {
		p.cores.step(f, core.NoRoomFound{Refusal: noCapacity(c.launched.NoRoom, p.patience)})
	}
}

// blockRefill keeps pools from growing while others lack room.
func (p *placer) blockRefill(now time.Time) {
	if p.pools {
		p.spares.blockRefill(now.Add(refillBlockTime))
	}
}

// lend makes room for functions of other schedulers that have calls, no instance and no
// room; after all that functions of this scheduler want.
func (p *placer) lend(now time.Time) {
	asked := p.peers.requests(now)
	made, loans := make(map[string]map[string]capacity.Grant), make(map[capacity.Loan]int)
	shapes := make(map[string]capacity.Shape) // by function, of those that are known
	for _, a := range asked {
		if made[a.Peer] == nil {
			made[a.Peer] = make(map[string]capacity.Grant)
		}
		made[a.Peer][a.UID] = capacity.Grant{Exhausted: true}
		if f := p.functions.lookup(a.UID); f != nil {
			a.Shape = p.shape(f.currentUnit())
			shapes[a.UID] = a.Shape
			loan := capacity.Loan{Peer: a.Peer, Shape: a.Shape}
			loans[loan] = max(loans[loan], a.Instances)
		}
	}
	if p.planner.TrimLoans(loans) {
		p.blockRefill(now)
		p.gather(now)
	}
	for _, a := range asked {
		if of, known := shapes[a.UID]; known {
			evict := p.evictorFor(p.functions.lookup(a.UID).current())
			made[a.Peer][a.UID] = p.planner.Lend(capacity.Loan{Peer: a.Peer, Shape: of}, a.Instances, a.Waited, now, evict)
		}
	}
	p.peers.setGrants(made)
}

// evictorFor evicts instances for a function's.
func (p *placer) evictorFor(fn *v1alpha1.Function) capacity.Evictor {
	return func(e capacity.Evict) bool { return p.evict(e, "made room for "+fn.Key().String()) }
}

// evict terminates an idle instance to make room, unless it has been needed since the
// planner picked it.
func (p *placer) evict(e capacity.Evict, reason string) bool {
	if e.Spare {
		p.spares.stop(p.instances, provisioner.Key(e.Key))
		p.log.Info("removing a spare instance", "cid", e.CID, "node", e.Node, "reason", reason)
		return true
	}
	f := p.functions.lookup(e.FunctionUID)
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, let := core.AnswerOf[core.Terminate](p.cores.stepLocked(f, core.EvictRequested{
		CID: e.CID, IdleFor: e.For, KindStart: p.starts.mean(kindOf(f.fn)), Reason: reason,
	}))
	if let {
		p.log.Info("evicted an idle instance", "function", f.fn.Key().String(), "cid", e.CID, "reason", reason, "idle", e.For)
	}
	return let
}

// gather lets the planner know of instances that may be evicted, once in a tick.
func (p *placer) gather(now time.Time) {
	if !p.planner.Gathered() {
		p.handInUsage(now)
		p.planner.Gather(now)
	}
}

// handInUsage hands in the usage of all functions of which something may have changed.
func (p *placer) handInUsage(now time.Time) {
	changed := p.planner.Due(now)
	for _, f := range p.dirty.takeAll() {
		changed = append(changed, f.uid)
	}
	changed = p.instances.Changed(changed)
	usages := make(map[string]capacity.Usage, len(changed))
	var list []provisioner.Placed
	for _, uid := range changed {
		if _, known := usages[uid]; !known {
			list = p.instances.Placed(list[:0], uid)
			usages[uid] = p.usage(uid, list, now)
		}
	}
	p.planner.Update(usages)
}

// invalidateUsage has all usage handed in anew when it is next needed: a change that nobody noted
// is made up for when every other level of what is believed is looked at.
func (p *placer) invalidateUsage() {
	p.dirty.takeAll()
	p.instances.ResetChanged()
	p.planner.Invalidate()
}

// usage is what the instances of one function, or of one pool, amount to.
func (p *placer) usage(uid string, list []provisioner.Placed, now time.Time) (u capacity.Usage) {
	created := 0
	_, pool := warmpool.PoolOf(uid)
	for _, in := range list {
		if in.State != provisioner.Created {
			u.Moving = append(u.Moving, in.Node)
		}
		switch {
		case in.State == provisioner.Leaving:
		case pool:
			u.Idle = append(u.Idle, capacity.Idle{Key: capacity.Key(in.Key), Node: in.Node, Requests: in.Requests, Spare: true, Since: in.Launched})
		default:
			created++
		}
	}
	if f := p.functions.lookup(uid); f != nil && created > 0 {
		p.usageOf(&u, f, list, created, now)
	}
	return u
}

// usageOf adds what a function's instances amount to that work, or are to.
func (p *placer) usageOf(u *capacity.Usage, f *function, list []provisioner.Placed, created int, now time.Time) {
	of := f.currentUnit()
	u.Namespace = of.fn.Namespace
	u.MilliCPU = max(1, of.shape.Requests.MilliCPU) * int64(created)
	idle, until := p.idleOf(f, now)
	u.Until = until
	if len(idle) == 0 {
		return
	}
	working := make(map[string]provisioner.Placed, len(list))
	for _, in := range list {
		if in.State == provisioner.Created {
			working[string(in.CID)] = in
		}
	}
	for _, i := range idle {
		if in, works := working[string(i.CID)]; works {
			u.Idle = append(u.Idle, capacity.Idle{
				Key: capacity.Key(in.Key), Node: in.Node, Requests: in.Requests, Namespace: u.Namespace, Since: i.Since,
			})
		}
	}
}

// idleOf are the instances of a function that may be evicted, and until when that stands.
func (p *placer) idleOf(f *function, now time.Time) (idle []queue.IdleInstance, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Evictable(now, p.starts.mean(kindOf(f.fn)))
}
