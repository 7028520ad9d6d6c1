package scheduler

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
	"github.com/windlass-dev/windlass/pkg/rollout"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// unit is the shell around the core of one unit of a function. It feeds the core events and carries out
// the effects under the same lock, so that every observer sees them in the same order. It also
// keeps the data for reports and metrics, which the core does not need.
type unit struct {
	opener *opener
	uid    string
	slot   ownership.Slot
	// countedSince is when this scheduler began to count for the function. Each counter
	// carries it, so it is a whole second, which compresses well.
	countedSince time.Time

	// mu guards the fields below. No code waits for it while it holds another lock of the
	// scheduler, the provisioner, the coordinator or the router.
	mu   sync.Mutex
	core *core.Function
	outline
	// unitSpec is nil while the unit rests, and packed has it then; see settle.
	*unitSpec
	packed *catalog.Packed[rollout.Entry]
	// met says that the unit has a stream, or had one since it rested.
	met     bool
	streams pullStreams
	stats   unitStats
	// dirty says that the unit is in the dirty set.
	dirty bool
}

// unitStats is the data about a unit for reports and metrics.
type unitStats struct {
	// since is when this scheduler learned of the function. started says that, as far as this
	// scheduler knows, an instance has asked for work.
	since   time.Time
	started bool
	// failure is the last failure of an instance, or nil.
	failure *decisionlog.Failure
	// coreWait is the last long wait of a call for a core, or nil.
	coreWait *decisionlog.CoreWait
	// noRoom is why the last launch found no node; empty if it did.
	noRoom string
	// peak is the highest number of instances so far.
	peak int
	// plan has the inputs of the last decision.
	plan          lastPlan
	counters      counters
	byReason      reasonCounters
	events        eventRing
	pendingStarts pendingStarts
	waitingCalls  waitingCalls
	reports       agentReports
	// startPhases are the summed phases of all starts; nil if there was none.
	startPhases *coldstart.Durations
	// executions has the execution times; nil if no call has run.
	executions *exposition.Histogram
}

// observeExecutions counts n executions that took that long; 0 means that the function did not
// run.
func (st *unitStats) observeExecutions(took time.Duration, n uint64) {
	if took <= 0 {
		return
	}
	if st.executions == nil {
		st.executions = new(exposition.Histogram)
	}
	st.executions.ObserveN(took.Seconds(), n)
}

func (s *shell) newUnit(n news) *unit {
	now, uid := s.deps.Now(), uidOf(n.fn)
	u := &unit{
		opener:       s.opener,
		uid:          uid,
		slot:         ownership.SlotOf(uid, 0),
		countedSince: now.Truncate(time.Second),
		core:         core.New(&s.core, s.specOf(n.fn)),
		stats:        unitStats{since: now},
	}
	u.accept(n)
	return u
}

// pullStreams are the streams of a unit's joined instances; nil if there are none.
type pullStreams map[invocation.CID]*pullStream

// replace replaces an instance's stream; nil removes it.
func (s *pullStreams) replace(cid invocation.CID, p *pullStream) {
	switch {
	case p == nil:
		if delete(*s, cid); len(*s) == 0 {
			*s = nil // a map keeps the size that it had in a burst
		}
		return
	case *s == nil:
		*s = make(pullStreams)
	}
	(*s)[cid] = p
}

// specOf returns the settings that a function's core uses.
func (s *shell) specOf(fn *v1alpha1.Function) core.Spec {
	scaling, down, calls := &fn.Spec.Scaling, &fn.Spec.Scaling.ScaleDown, &fn.Spec.Calls
	backoff, idle := down.Idle()
	spec := core.Spec{
		Concurrency: int(fn.Spec.Template.Concurrency),
		Timeout:     fn.Spec.Template.Timeout.Duration, StartupTimeout: fn.Spec.Template.StartupTimeout.Duration,
		Decide: s.decider(fn),
		Calls:  admission.Limits{Concurrency: int(calls.MaxInFlight), Rate: calls.Rate.PerSecond(), Burst: int(calls.Rate.Burst)}, Limited: calls.Limited(),
		Min: int(scaling.MinInstances), Proving: fn.Proving(),
		BackoffAfter: backoff, IdleTimeout: idle, KeepLast: down.LastInstanceIdleTimeout.Duration,
		Windows: scaling.Calendar(), Learns: down.Policy == v1alpha1.ScaleDownLearned,
	}
	if scaling.MaxInstances != nil {
		spec.Max = int(*scaling.MaxInstances)
	}
	return spec
}

// algorithm is the name of a function's decider: its own, or that of the configuration.
func (s *shell) algorithm(fn *v1alpha1.Function) string {
	if _, known := autoscaler.ByName(fn.Algorithm()); known {
		return fn.Algorithm()
	}
	return s.config.Decider
}

func (s *shell) decider(fn *v1alpha1.Function) autoscaler.Decider {
	d, _ := autoscaler.ByName(s.algorithm(fn)) // which Config.Validate knows
	return d
}

// params are the deciders' constants.
func (s *shell) params() autoscaler.Params {
	return autoscaler.Params{Tick: s.config.Tick, StaleAfter: core.StaleAfter}
}

// fn is the latest version of the function.
func (u *unit) fn() *v1alpha1.Function { return u.spec().fn }

// spec is fn with the values derived from it.
func (u *unit) spec() *unitSpec {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.specLocked()
}

// view describes the queue.
func (u *unit) view(now time.Time) queue.View {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.View(now)
}

// means are the mean execution and start times.
func (u *unit) means() estimate.Means {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.Means()
}

func (u *unit) recordFailure(why provisioner.StartFailure, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stats.failure = &decisionlog.Failure{At: now.UTC(), Code: why.Code, Detail: invocation.Excerpt(why.String())}
}

// lastFailure is the last failure of an instance, or nil.
func (u *unit) lastFailure() *decisionlog.Failure {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stats.failure
}

func (u *unit) lastCoreWait() *decisionlog.CoreWait {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stats.coreWait
}

// units holds the units that the scheduler knows, and the ones that the next tick looks
// at.
type units struct {
	mu     sync.RWMutex
	byUID  map[string]*unit
	active map[*unit]struct{}
	// ofFunction maps a function's UID to the UIDs of its units, oldest first.
	ofFunction map[string][]string
	// removed are the units that were removed lately, and when.
	removed map[string]time.Time
}

// rememberRemovedFor is how long a scheduler tells the agents of a removed unit to leave. Agents that
// come later find no scheduler that knows them, and leave after their idle timeout.
const rememberRemovedFor = 10 * time.Minute

func newUnits() *units {
	return &units{
		byUID: make(map[string]*unit), active: make(map[*unit]struct{}),
		ofFunction: make(map[string][]string), removed: make(map[string]time.Time),
	}
}

// setUnits replaces the units of a function, with none if it was deleted, and returns the UIDs
// of units that it no longer has.
func (us *units) setUnits(function string, now []*v1alpha1.Function) (gone []string) {
	there := make([]string, 0, len(now))
	for _, unit := range now {
		there = append(there, uidOf(unit))
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	for _, uid := range us.ofFunction[function] {
		if !slices.Contains(there, uid) {
			gone = append(gone, uid)
		}
	}
	if us.ofFunction[function] = there; len(there) == 0 {
		delete(us.ofFunction, function)
	}
	return gone
}

// unitsOf returns the units of the function with that UID, oldest first, or the unit with that
// UID alone.
func (us *units) unitsOf(uid string) (units []*unit) {
	us.mu.RLock()
	defer us.mu.RUnlock()
	if u := us.byUID[uid]; u != nil {
		return []*unit{u}
	}
	for _, uid := range us.ofFunction[uid] {
		if u := us.byUID[uid]; u != nil {
			units = append(units, u)
		}
	}
	return units
}

// lookup returns a unit, or nil.
func (us *units) lookup(uid string) *unit {
	us.mu.RLock()
	defer us.mu.RUnlock()
	return us.byUID[uid]
}

func (us *units) add(u *unit) {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.byUID[u.uid] = u
	delete(us.removed, u.uid)
}

// remove removes a unit and returns it, or nil.
func (us *units) remove(uid string, now time.Time) *unit {
	us.mu.Lock()
	defer us.mu.Unlock()
	u := us.byUID[uid]
	delete(us.byUID, uid)
	delete(us.active, u)
	maps.DeleteFunc(us.removed, func(_ string, at time.Time) bool { return now.Sub(at) > rememberRemovedFor })
	us.removed[uid] = now
	return u
}

// wasRemoved reports whether a unit was removed lately.
func (us *units) wasRemoved(uid string) bool {
	us.mu.RLock()
	defer us.mu.RUnlock()
	_, removed := us.removed[uid]
	return removed
}

func (us *units) all() []*unit {
	us.mu.RLock()
	defer us.mu.RUnlock()
	return slices.Collect(maps.Values(us.byUID))
}

// activate makes the next tick look at a function, unless it was removed.
func (us *units) activate(u *unit) {
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.byUID[u.uid] == u {
		us.active[u] = struct{}{}
	}
}

// park makes ticks pass over a function.
func (us *units) park(u *unit) {
	us.mu.Lock()
	defer us.mu.Unlock()
	delete(us.active, u)
}

// isActive reports whether the next tick looks at a function.
func (us *units) isActive(u *unit) bool {
	us.mu.RLock()
	defer us.mu.RUnlock()
	_, active := us.active[u]
	return active
}

// listActive returns the functions that are not parked.
func (us *units) listActive() []*unit {
	us.mu.RLock()
	defer us.mu.RUnlock()
	return slices.Collect(maps.Keys(us.active))
}

// busy reports whether a function of a slot is not parked.
func (us *units) busy(slot ownership.Slot) bool {
	us.mu.RLock()
	defer us.mu.RUnlock()
	for u := range us.active {
		if u.slot == slot {
			return true
		}
	}
	return false
}
