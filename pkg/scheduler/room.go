package scheduler

import (
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// placer feeds a capacity.Planner and carries out its decisions. Only Run's goroutine uses it.
type placer struct {
	planner *capacity.Planner
	shell   *shell
	peers   *peerRoom
	spares  *spares
}

func newPlacer(sh *shell, spares *spares, peers *peerRoom) *placer {
	c := sh.config
	planner := capacity.New(capacity.Config{
		Tick: c.Tick, EvictAfter: c.EvictAfter, Patience: c.NoRoomPatience, Spares: sh.deps.Runtimes != nil,
	})
	return &placer{planner: planner, shell: sh, peers: peers, spares: spares}
}

// whereOf names the nodes on which a function's instances may run; empty for a function that
// may run on every ordinary node. Namespaces have no bound here: they share the launches, and
// only the API server knows their quotas.
func whereOf(fn *v1alpha1.Function) string {
	if len(fn.Spec.Template.Placement.NodeSelector) == 0 && len(fn.Spec.Template.Placement.Tolerations) == 0 {
		return ""
	}
	// Values that were read from JSON can be written.
	text, _ := json.Marshal([]any{fn.Spec.Template.Placement.NodeSelector, fn.Spec.Template.Placement.Tolerations})
	return string(text)
}

// shapeOf returns the requests and the placement of a function's instances.
func shapeOf(fn *v1alpha1.Function, of Requests) capacity.Shape {
	return capacity.Shape{Requests: of.Requests(fn), Where: whereOf(fn)}
}

// shape is the unit's shape. The planner tracks its nodes from then on.
func (p *placer) shape(spec *unitSpec) capacity.Shape {
	if !p.planner.Observed(spec.shape.Where) {
		candidates := p.shell.deps.Instances.Candidates(spec.fn)
		if p.shell.busyNodes.some() {
			candidates.Mark(p.shell.busyNodes.has)
		}
		p.planner.Observe(spec.shape.Where, candidates)
	}
	return spec.shape
}

// room is how many more instances of a unit fit on the nodes.
func (p *placer) room(spec *unitSpec) int { return p.planner.Room(p.shape(spec)) }

// nodesBusy reports whether all nodes with room for the unit are busy.
func (p *placer) nodesBusy(spec *unitSpec) bool {
	return p.shell.busyNodes.some() && p.planner.Busy(p.shape(spec))
}

// launch launches up to n instances on nodes with room, reserved room first. If room limits
// their number, the result says why. The UID is empty for a pool.
func (p *placer) launch(uid string, spec *unitSpec, term invocation.Term, n int) (launched provisioner.LaunchResult) {
	of := p.shape(spec)
	launched.Keys = p.shell.deps.Instances.LaunchOn(spec.fn, term, n, func() (string, bool) {
		node, ok := p.planner.Place(uid, of, rand.IntN)
		if !ok {
			launched.NoRoom = p.planner.Explain(of)
		}
		return node, ok
	})
	return launched
}

// beginTick begins a tick of the planner, which learns what has ended since the last one.
func (p *placer) beginTick(now time.Time) {
	for _, key := range p.planner.Leaving() {
		if _, there := p.shell.deps.Instances.Lookup(provisioner.Key(key)); !there {
			p.planner.Left(key)
		}
	}
	for _, uid := range p.planner.Reserving() {
		if u := p.shell.units.lookup(uid); u == nil || !u.served() {
			p.planner.Trim(uid, 0)
		}
	}
	p.planner.BeginTick(now)
}

// handleShortage makes room for launches that could not be placed. If it cannot, it asks other
// schedulers. Calls that wait for a first instance keep waiting while room may become free.
// They are refused once nothing has changed for a while on the nodes in question and no other
// scheduler makes room.
func (p *placer) handleShortage(e *evaluation) {
	u, now := e.unit, p.shell.deps.Now()
	if p.shell.deps.Runtimes != nil && p.planner.CouldHold(p.shape(e.unitSpec)) {
		p.blockRefill(now)
	}
	if reserved := p.planner.Reserved(u.uid); reserved > 0 && reserved >= e.missing() {
		return
	}
	p.gather(now)
	w := e.want()
	unplaceable := p.planner.MakeRoom(w, now, p.evictorFor(e.fn))
	if unplaceable && !p.peers.mayGrant(w.Shape, now) {
		p.shell.step(u, core.NoRoomFound{Refusal: noCapacity(e.launched.NoRoom, p.shell.config.NoRoomPatience)})
	}
}

// blockRefill keeps pools from growing while functions lack room that a node could have. For an
// instance that no node can ever hold, pools would stay without spare instances for nothing.
func (p *placer) blockRefill(now time.Time) { p.spares.blockRefill(now.Add(refillBlockTime)) }

// lend makes room for functions of other schedulers that have calls, no instance and no room.
// Functions of this scheduler come first.
func (p *placer) lend(now time.Time) {
	asked := p.peers.requests(now)
	made, loans := make(map[string]map[string]capacity.Grant), make(map[capacity.Loan]int)
	shapes := make(map[string]capacity.Shape) // by function, of those that some node could hold
	for _, a := range asked {
		if made[a.Peer] == nil {
			made[a.Peer] = make(map[string]capacity.Grant)
		}
		made[a.Peer][a.UID] = capacity.Grant{Exhausted: true}
		u := p.shell.units.lookup(a.UID)
		if u == nil {
			continue
		}
		if a.Shape = p.shape(u.spec()); p.planner.CouldHold(a.Shape) {
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
		if of, could := shapes[a.UID]; could {
			evict := p.evictorFor(p.shell.units.lookup(a.UID).fn())
			made[a.Peer][a.UID] = p.planner.Lend(capacity.Loan{Peer: a.Peer, Shape: of}, a.Instances, a.Waited, now, evict)
		}
	}
	p.peers.setGrants(made)
}

// evictorFor returns the function that evicts instances for a function.
func (p *placer) evictorFor(fn *v1alpha1.Function) capacity.Evictor {
	return func(e capacity.Evict) bool { return p.evict(e, "made room for "+fn.Key().String()) }
}

// evict evicts an instance unless it has been needed since the planner read its usage.
func (p *placer) evict(e capacity.Evict, reason string) bool {
	if e.Spare {
		p.spares.stop(p.shell.deps.Instances, provisioner.Key(e.Key))
		p.shell.deps.Log.Info("removing a spare instance", "cid", e.CID, "node", e.Node, "reason", reason)
		return true
	}
	u := p.shell.units.lookup(e.FunctionUID)
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	_, let := core.AnswerOf[core.Terminate](p.shell.stepLocked(u, core.EvictRequested{
		CID: e.CID, IdleFor: e.For, KindStart: p.shell.starts.mean(u.kind), Reason: reason,
	}))
	if let {
		p.shell.deps.Log.Info("evicted an idle instance", "function", u.key.String(), "cid", e.CID, "reason", reason, "idle", e.For)
	}
	return let
}

// gather passes the evictable instances to the planner, once a tick.
func (p *placer) gather(now time.Time) {
	if !p.planner.Gathered() {
		p.handInUsage(now)
		p.planner.Gather(now)
	}
}

// handInUsage passes the usage of all functions in the dirty set to the planner.
func (p *placer) handInUsage(now time.Time) {
	changed := p.planner.Due(now)
	for _, u := range p.shell.dirty.takeAll() {
		changed = append(changed, u.uid)
	}
	changed = p.shell.deps.Instances.Changed(changed)
	usages := make(map[string]capacity.Usage, len(changed))
	var list []provisioner.Placed
	for _, uid := range changed {
		if _, known := usages[uid]; !known {
			list = p.shell.deps.Instances.Placed(list[:0], uid)
			usages[uid] = p.usage(uid, list, now)
		}
	}
	p.planner.Update(usages)
}

// invalidateUsage makes the planner read all usage again when it next needs it, so that a
// change that was not recorded is corrected with the other audits.
func (p *placer) invalidateUsage() {
	p.shell.dirty.takeAll()
	p.shell.deps.Instances.ResetChanged()
	p.planner.Invalidate()
}

// usage is the use of room by the instances of one function or pool.
func (p *placer) usage(uid string, list []provisioner.Placed, now time.Time) (usage capacity.Usage) {
	created := 0
	_, pool := warmpool.PoolOf(uid)
	for _, in := range list {
		if in.State != provisioner.Created {
			usage.Moving = append(usage.Moving, in.Node)
		}
		switch {
		case in.State == provisioner.Leaving:
		case pool:
			usage.Idle = append(usage.Idle, capacity.Idle{Key: capacity.Key(in.Key), Node: in.Node, Requests: in.Requests, Spare: true, Since: in.Launched})
		default:
			created++
		}
	}
	if u := p.shell.units.lookup(uid); u != nil && created > 0 {
		p.usageOf(&usage, u, list, created, now)
	}
	return usage
}

// usageOf adds the room of a function's working and starting instances.
func (p *placer) usageOf(usage *capacity.Usage, u *unit, list []provisioner.Placed, created int, now time.Time) {
	of := u.spec()
	usage.Namespace = of.fn.Namespace
	usage.MilliCPU = max(1, of.shape.Requests.MilliCPU) * int64(created)
	idle, until := p.idleOf(u, now)
	usage.Until = until
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
			usage.Idle = append(usage.Idle, capacity.Idle{
				Key: capacity.Key(in.Key), Node: in.Node, Requests: in.Requests, Namespace: usage.Namespace, Since: i.Since,
			})
		}
	}
}

// idleOf returns the evictable instances of a function, and until when the answer holds.
func (p *placer) idleOf(u *unit, now time.Time) (idle []queue.IdleInstance, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.Evictable(now, p.shell.starts.mean(u.kind))
}

// dirtySet holds, once each, the functions whose usage has changed since the planner last read
// it.
type dirtySet struct {
	mu   sync.Mutex
	list []*unit
}

// takeAll returns all functions and empties the set.
func (d *dirtySet) takeAll() []*unit {
	d.mu.Lock()
	taken := d.list
	d.list = nil
	d.mu.Unlock()
	for _, u := range taken {
		u.mu.Lock()
		u.dirty = false
		u.mu.Unlock()
	}
	return taken
}

// markDirty records that the usage of a function has changed. The caller holds the function's
// lock.
func (s *shell) markDirty(u *unit) {
	if u.dirty {
		return
	}
	u.dirty = true
	s.dirty.mu.Lock()
	defer s.dirty.mu.Unlock()
	s.dirty.list = append(s.dirty.list, u)
}

// busyNodes are the nodes that have more threads that want to run than cores, by what instances
// say. The scheduler knows of those that run instances of its functions.
type busyNodes struct {
	mu sync.Mutex // guards by
	// by counts the instances that say so, by node.
	by map[string]int
}

func newBusyNodes() *busyNodes { return &busyNodes{by: make(map[string]int)} }

// hear counts one instance more that says so of its node, or one less.
func (b *busyNodes) hear(node string, busy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if busy {
		b.by[node]++
		return
	}
	if b.by[node]--; b.by[node] == 0 {
		delete(b.by, node)
	}
}

func (b *busyNodes) some() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.by) > 0
}

func (b *busyNodes) has(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[node] > 0
}
