package scheduler

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

const (
	// computeSharesEvery is how often the shares of warm pools are computed.
	computeSharesEvery = time.Second
	// refillBlockTime is for how long no spare instance is created after a function found no
	// room.
	refillBlockTime = 30 * time.Second
	// assignBlockTime is how long no spare instance of a pool is assigned after one could not be.
	assignBlockTime = 10 * time.Second
)

// Runtimes lists the ClusterRuntimes of the cluster. Callers must not change them.
type Runtimes interface {
	Get(name string) (*v1alpha1.ClusterRuntime, bool)
	List() []*v1alpha1.ClusterRuntime
	// NamespaceLabels returns the labels of a namespace, for a pool's namespaceSelector; nil
	// if the namespace is unknown. Callers must not change them.
	NamespaceLabels(name string) map[string]string
}

// warmPools keeps this scheduler's part of the ClusterRuntimes' warm pools and assigns spare
// instances to functions.
type warmPools struct {
	shell  *shell
	spares *spares
	placer *placer
	budget *capacity.Budget
}

// spares holds this scheduler's parts of warm pools. Only Run's goroutine launches spare
// instances.
type spares struct {
	// planned is when the parts were computed.
	planned time.Time
	// epoch is the epoch of the newest pool.
	epoch uint64

	mu sync.Mutex
	// byUID has each pool with a part or an instance.
	byUID map[string]*warmPool
	// generations are those of the ClusterRuntimes with warm pools at the last computation, by
	// name; nil before the first.
	generations        map[string]int64
	refillBlockedUntil time.Time
	// closed says that the scheduler stops and keeps no spare instances.
	closed bool
}

// warmPool is the scheduler's part of a warm pool.
type warmPool struct {
	warmpool.Pool
	// fn is the function that stands for the pool, and rev its revision.
	fn  *v1alpha1.Function
	rev string
	// term makes the names of its instances unique among all schedulers and pools, past ones
	// included.
	term   invocation.Term
	target int
	// noRoom says that some are missing because nodes have no room.
	noRoom bool
	// ready are the instances that can be assigned.
	ready map[invocation.CID]*spareStream
	// assignBlockedUntil is until when none is assigned.
	assignBlockedUntil time.Time
	// settled says that nothing has changed since the pool had its size, or since nothing
	// could be done about it.
	settled bool
}

func newSpares() *spares {
	return &spares{byUID: make(map[string]*warmPool)}
}

// maintainPools brings the pools to their sizes. It follows the launches of functions, so that
// these get the launch rate and the room first.
func (w *warmPools) maintainPools() {
	if w.shell.deps.Runtimes == nil {
		return
	}
	now := w.shell.deps.Now()
	if now.Sub(w.spares.planned) >= computeSharesEvery {
		w.spares.planned = now
		w.computeShares()
	}
	for _, p := range w.spares.unsettled() {
		w.maintainPool(p)
	}
}

// nextEpoch returns an epoch that no pool has used here: the time in milliseconds, or a later
// one, so that neither a pool that was removed in the same moment nor an earlier process has
// used it. Only Run's goroutine calls it.
func (s *spares) nextEpoch(now time.Time) uint64 {
	s.epoch = max(s.epoch+1, uint64(now.UnixMilli()))
	return s.epoch
}

// computeShares computes the pools and the scheduler's part of each.
func (w *warmPools) computeShares() {
	pooled, generations := make(map[string]*v1alpha1.ClusterRuntime), make(map[string]int64)
	for _, rt := range w.shell.deps.Runtimes.List() {
		if len(rt.Spec.WarmPools) > 0 {
			pooled[rt.Name], generations[rt.Name] = rt, rt.Generation
		}
	}
	targets := make(map[string]*warmPool)
	term := invocation.Term{Epoch: w.spares.nextEpoch(w.shell.deps.Now()), Standby: w.shell.slots.standby}
	if len(pooled) > 0 {
		for name, owned := range w.eligible(pooled) {
			rt := pooled[name.Runtime]
			if target := warmpool.Share(int(rt.Spec.Pool(name.Name).Size), owned, w.shell.config.ID); target > 0 {
				fn := warmpool.PoolFunction(name, rt)
				targets[name.UID()] = &warmPool{Pool: name, fn: fn, rev: fn.Revision(), term: term, target: target}
			}
		}
	}
	for _, p := range w.spares.updateShares(targets, generations) {
		// An earlier scheduler process of the same id may have left instances.
		w.shell.deps.Instances.Adopt(p.fn)
	}
}

// eligible counts, for each pool, the functions that could use it by the scheduler that owns
// them.
func (w *warmPools) eligible(pooled map[string]*v1alpha1.ClusterRuntime) map[warmpool.Pool]map[string]int {
	var slots *ownership.Map
	if w.shell.deps.Router != nil {
		slots = w.shell.deps.Router.Map()
	}
	counts := make(map[warmpool.Pool]map[string]int)
	for _, u := range w.shell.all() {
		rt := pooled[u.readOutline().kind]
		if rt == nil {
			continue
		}
		fn := u.keepOpen()
		pool, _ := warmpool.Choose(fn, rt, w.shell.deps.Runtimes.NamespaceLabels(fn.Namespace))
		if pool == nil {
			continue
		}
		owner := w.shell.config.ID
		if slots != nil {
			of, known := slots.Owner(u.slot)
			if !known {
				continue
			}
			owner = of.ID
		}
		name := warmpool.Pool{Scheduler: w.shell.config.ID, Namespace: fn.Namespace, Runtime: rt.Name, Name: pool.Name}
		if counts[name] == nil {
			counts[name] = make(map[string]int)
		}
		counts[name][owner]++
	}
	return counts
}

// updateShares applies the computed pools and returns the new ones.
func (s *spares) updateShares(targets map[string]*warmPool, generations map[string]int64) (fresh []*warmPool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.generations = generations
	for uid, p := range s.byUID {
		p.settled = false
		if targets[uid] == nil {
			p.target = 0
		}
	}
	for uid, planned := range targets {
		if known := s.byUID[uid]; known != nil {
			known.fn, known.rev, known.target = planned.fn, planned.rev, planned.target
			continue
		}
		planned.ready = make(map[invocation.CID]*spareStream)
		s.byUID[uid] = planned
		fresh = append(fresh, planned)
	}
	return fresh
}

// unsettled returns copies of the pools to look at, in order.
func (s *spares) unsettled() []warmPool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []warmPool
	for _, p := range s.byUID {
		if !p.settled && !s.closed {
			list = append(list, *p)
		}
	}
	slices.SortFunc(list, func(a, b warmPool) int { return cmp.Compare(a.UID(), b.UID()) })
	return list
}

// maintainPool brings one pool closer to its size.
func (w *warmPools) maintainPool(p warmPool) {
	uid, now := p.UID(), w.shell.deps.Now()
	// 1. Observe.
	seen := w.survey(p, now)
	// 2. Decide.
	d := warmpool.Decide(seen.Snapshot)
	// 3. Launch or remove instances.
	noRoom, more := w.resize(p, seen, d, now)
	// 4. Forget the pool, or look at it again when something has changed.
	if len(seen.present) == 0 && p.target == 0 {
		w.spares.removePool(uid)
		w.shell.deps.Instances.Forget(uid)
		return
	}
	w.spares.record(uid, noRoom, !more)
}

// poolSurvey is what is observed of a pool, with its instances.
type poolSurvey struct {
	warmpool.Snapshot
	present, outdated []provisioner.Instance
}

func (w *warmPools) survey(p warmPool, now time.Time) (seen poolSurvey) {
	uid := p.UID()
	seen.Snapshot = warmpool.Snapshot{
		Target: p.target, NodesFull: w.spares.refillBlocked(now), LaunchBudget: w.budget.LeftNow(now),
		Failing: w.shell.deps.Instances.Observe(uid).Failing,
	}
	for _, in := range w.shell.deps.Instances.Instances(uid) {
		switch in.State {
		case provisioner.Leaving:
			continue
		case provisioner.Created:
			seen.Ready++
		default:
			seen.Starting++
		}
		seen.present = append(seen.present, in)
		if in.Revision != p.rev {
			seen.outdated = append(seen.outdated, in)
		}
	}
	seen.Outdated = len(seen.outdated)
	return seen
}

// resize carries out a decision. noRoom says that nodes have no room for an instance, and more that the
// next tick may do more.
func (w *warmPools) resize(p warmPool, seen poolSurvey, d warmpool.Decision, now time.Time) (noRoom, more bool) {
	log := w.shell.deps.Log.With("namespace", p.Namespace, "runtime", p.Runtime, "pool", p.Name, "target", p.target,
		"ready", seen.Ready, "starting", seen.Starting, "reason", string(d.Why))
	noRoom, more = d.Why == warmpool.ReasonNodesFull, d.More
	switch {
	case d.Create > 0:
		launched := w.placer.launch("", w.shell.opener.unitSpecOf(nil, p.fn), p.term, d.Create)
		w.budget.Spend(now, len(launched.Keys))
		noRoom = launched.NoRoom != ""
		// Neither lack of room nor a back-off is over in the next tick.
		more = more && len(launched.Keys) == d.Create
		level := slog.LevelDebug // again and again, as long as there is no room
		if len(launched.Keys) > 0 {
			level = slog.LevelInfo
		}
		log.Log(context.Background(), level, "launched spare instances", "launched", len(launched.Keys), "noRoom", launched.NoRoom)
	case d.Replace > 0:
		log.Info("replacing spare instances", "removed", d.Replace)
		w.removeSpares(seen.outdated[:d.Replace])
	case d.Remove > 0:
		log.Info("removing spare instances", "removed", d.Remove)
		slices.SortFunc(seen.present, leastReady)
		w.removeSpares(seen.present[:d.Remove])
	}
	return noRoom, more
}

// leastReady orders spare instances by how little is lost with them: those that are starting
// first, and among equals the youngest.
func leastReady(a, b provisioner.Instance) int {
	return cmp.Or(cmp.Compare(a.State, b.State), provisioner.YoungestFirst(a, b))
}

// record records whether a pool lacked room, and whether ticks pass over it until something changes.
func (s *spares) record(uid string, noRoom, settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byUID[uid]; p != nil {
		p.settled, p.noRoom = settled, noRoom
	}
}

// removePool removes a pool that has neither a size nor instances.
func (s *spares) removePool(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUID, uid)
}

// markUnsettled makes the next tick look at a pool.
func (s *spares) markUnsettled(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byUID[uid]; p != nil {
		p.settled = false
	}
}

func (s *spares) refillBlocked(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.refillBlockedUntil)
}

func (s *spares) blockRefill(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refillBlockedUntil = until
}

// assignBlocked reports whether no spare instance of a pool may be assigned now.
func (s *spares) assignBlocked(uid string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.byUID[uid]
	return p != nil && now.Before(p.assignBlockedUntil)
}

func (s *spares) blockAssign(uid string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byUID[uid]; p != nil {
		p.assignBlockedUntil = until
	}
}

func (w *warmPools) removeSpares(list []provisioner.Instance) {
	for _, in := range list {
		w.spares.stop(w.shell.deps.Instances, in.Key)
	}
}

// stop ends a spare instance.
func (s *spares) stop(instances Ender, key provisioner.Key) {
	s.withhold(key)
	instances.End(key, provisioner.Ending{})
}

// spareEnded records that a spare instance has ended or failed to start, and reports whether
// the instance was a spare one.
func (w *warmPools) spareEnded(key provisioner.Key, why provisioner.StartFailure) bool {
	p, ofPool := warmpool.PoolOf(key.FunctionUID)
	if !ofPool {
		return false
	}
	w.shell.deps.Log.Info("a spare instance has ended", "namespace", p.Namespace, "runtime", p.Runtime, "pool", p.Name, "cid", key.CID, "reason", why.Reason)
	w.spares.withhold(key)
	w.spares.markUnsettled(key.FunctionUID)
	return true
}

// RemoveSpares ends all spare instances and lets no more be created: no scheduler could assign
// them once this one is gone.
func (w *warmPools) RemoveSpares() {
	w.spares.mu.Lock()
	w.spares.closed = true
	uids := slices.Sorted(maps.Keys(w.spares.byUID))
	w.spares.mu.Unlock()
	for _, uid := range uids {
		w.removeSpares(w.shell.deps.Instances.Instances(uid))
	}
}

// poolShare is this scheduler's part of a pool in one namespace.
type poolShare struct {
	warmpool.Pool
	desired, ready int
	noRoom         bool
}

// shares returns the parts of all pools in the order of their ClusterRuntimes and names, and
// the generations of all ClusterRuntimes with pools; nil until the first computation.
func (s *spares) shares() (list []poolShare, generations map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.byUID {
		list = append(list, poolShare{p.Pool, p.target, len(p.ready), p.noRoom})
	}
	slices.SortFunc(list, func(a, b poolShare) int {
		return cmp.Or(cmp.Compare(a.Runtime, b.Runtime), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return list, s.generations // which is never changed
}

// poolFacts reports the scheduler's warm pools, summed over namespaces; nil until they are
// known. A ClusterRuntime without a part is listed too, so that the controller knows that its
// pools were evaluated.
func (w *warmPools) poolFacts() *controlwire.WarmPools {
	shares, generations := w.spares.shares()
	if generations == nil {
		return nil
	}
	told := make(map[string]*controlwire.RuntimeFacts, len(generations))
	all := &controlwire.WarmPools{}
	for name, generation := range generations {
		told[name] = &controlwire.RuntimeFacts{Name: name, Generation: generation}
		all.Runtimes = append(all.Runtimes, told[name])
	}
	slices.SortFunc(all.Runtimes, func(a, b *controlwire.RuntimeFacts) int { return cmp.Compare(a.Name, b.Name) })
	for _, of := range shares {
		if rt := told[of.Runtime]; rt != nil {
			w.addTo(rt, of)
		}
	}
	return all
}

// addTo adds the part of a namespace to a ClusterRuntime's facts. If spare instances fail to
// start in several namespaces, the first one is reported.
func (w *warmPools) addTo(rt *controlwire.RuntimeFacts, of poolShare) {
	last := len(rt.Pools) - 1
	if last < 0 || rt.Pools[last].Name != of.Name {
		rt.Pools = append(rt.Pools, &controlwire.PoolFacts{Name: of.Name})
		last++
	}
	p := rt.Pools[last]
	p.Desired, p.Ready, p.NoCapacity = p.Desired+uint32(of.desired), p.Ready+uint32(of.ready), p.NoCapacity || of.noRoom
	if seen := w.shell.deps.Instances.Observe(of.UID()); seen.Failing && p.Problem == "" {
		p.Problem, p.Detail = seen.Why.Code, "in namespace "+of.Namespace+": "+invocation.Excerpt(seen.Why.String())
	}
}
