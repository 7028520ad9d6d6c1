package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// function is the shell around the core of one unit, which is a function to all who serve
// it: it brings it events, and carries out its effects under the same lock, so that
// everybody sees them in the same order. It keeps what people ask about, which the core
// does not need.
type function struct {
	uid  string
	slot ownership.Slot
	// countedSince is since when this scheduler counts for the function. Each counter is
	// exported with it, so it is a whole second, which compresses well.
	countedSince time.Time

	// mu guards all that follows. It must not be taken while another lock of the
	// scheduler, the provisioner, the ownership or the router is held.
	mu   sync.Mutex
	core *core.Function
	*unit
	// streams are those of the instances that have joined.
	streams map[invocation.CID]*pullStream
	stats   functionStats
	// dirty says that the function is in the dirtySet.
	dirty bool
}

// unit is a function as it is now, with what ticks ask of it again and again. It is
// replaced, never changed.
type unit struct {
	fn       *v1alpha1.Function
	revision string
	// shape is what the room for one of its instances depends on, and turns names those
	// who get that room in turns.
	shape    capacity.Shape
	shareKey string
}

func (s *host) unitOf(fn *v1alpha1.Function) *unit {
	return &unit{fn: fn, revision: fn.Revision(), shape: shapeOf(fn, s.deps.Instances), shareKey: cmp.Or(fn.FunctionRevisionName(), fn.Name)}
}

// functionStats is what metrics, events and reports say of a function.
type functionStats struct {
	// since is since when this scheduler knows of the function, and started says that an
	// instance of it has asked for work, as far as this scheduler knows.
	since   time.Time
	started bool
	// failure is how an instance failed last, or nil.
	failure *decisionlog.Failure
	// noRoom is why the last launch found no node; empty if it did.
	noRoom string
	// peak is the most instances at a time.
	peak int
	// plan is that of the last decision.
	plan          lastPlan
	counters      counters
	byReason      reasonCounters
	events        eventRing
	pendingStarts pendingStarts
	waitingCalls  waitingCalls
	reports       agentReports
	// startPhases is what the starts of instances took; nil if there was none.
	startPhases *coldstart.Durations
	// executions is how long calls ran; nil if none has.
	executions *exposition.Histogram
}

// observeExecutions counts executions. Agents say how long they took, which is at most the timeout, and 0
// if the function did not run.
func (b *functionStats) observeExecutions(done []core.Done, timeout time.Duration) {
	for _, d := range done {
		if d.Execution <= 0 {
			continue
		}
		if b.executions == nil {
			b.executions = new(exposition.Histogram)
		}
		b.executions.Observe(min(d.Execution, timeout).Seconds())
	}
}

func (s *host) newFunction(fn *v1alpha1.Function) *function {
	now := s.deps.Now()
	return &function{
		uid:          uidOf(fn),
		slot:         ownership.SlotOf(uidOf(fn), 0),
		countedSince: now.Truncate(time.Second),
		core:         core.New(&s.core, s.specOf(fn)),
		unit:         s.unitOf(fn),
		streams:      make(map[invocation.CID]*pullStream),
		stats:        functionStats{since: now},
	}
}

// specOf is what of a function matters to its core.
func (s *host) specOf(fn *v1alpha1.Function) core.Spec {
	scaling, down, calls := &fn.Spec.Scaling, &fn.Spec.Scaling.ScaleDown, &fn.Spec.Calls
	backoff, idle := down.Idle()
	spec := core.Spec{
		Concurrency: int(fn.Spec.Template.Concurrency),
		Timeout:     fn.Spec.Template.Timeout.Duration, StartupTimeout: fn.Spec.Template.StartupTimeout.Duration,
		Decide: s.decider(fn),
		Calls:  admission.Limits{Concurrency: int(calls.MaxInFlight), Rate: calls.Rate.PerSecond(), Burst: int(calls.Rate.Burst)},
		Min:    int(scaling.MinInstances), Proving: fn.Proving(),
		BackoffAfter: backoff, IdleTimeout: idle, KeepLast: down.LastInstanceIdleTimeout.Duration,
		Windows: scaling.Calendar(), Learns: down.Policy == v1alpha1.ScaleDownLearned,
	}
	if scaling.MaxInstances != nil {
		spec.Max = int(*scaling.MaxInstances)
	}
	return spec
}

// current returns the function as it is now.
func (f *function) current() *v1alpha1.Function { return f.currentUnit().fn }

// currentUnit is current with what follows from it.
func (f *function) currentUnit() *unit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unit
}

// view describes the queue.
func (f *function) view(now time.Time) queue.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.View(now)
}

// means are what was learnt of the function.
func (f *function) means() estimate.Means {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Means()
}

// recordFailure notes how an instance failed.
func (f *function) recordFailure(why provisioner.StartFailure, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.failure = &decisionlog.Failure{At: now.UTC(), Code: why.Code, Detail: invocation.Excerpt(why.String())}
}

// lastFailure is how an instance of the function failed last, or nil.
func (f *function) lastFailure() *decisionlog.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats.failure
}

// functions are the units that the scheduler knows, and those of them that the next tick
// looks at.
type functions struct {
	mu     sync.RWMutex
	byUID  map[string]*function
	active map[*function]struct{}
	// units are the UIDs of the units of each function, by the function's UID, the first
	// one made first.
	units map[string][]string
}

func newFunctions() *functions {
	return &functions{byUID: make(map[string]*function), active: make(map[*function]struct{}), units: make(map[string][]string)}
}

// setUnits notes which units a function has now, none if it is gone, and returns the UIDs of
// those that it has no more.
func (fs *functions) setUnits(function string, now []*v1alpha1.Function) (gone []string) {
	there := make([]string, 0, len(now))
	for _, unit := range now {
		there = append(there, uidOf(unit))
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, uid := range fs.units[function] {
		if !slices.Contains(there, uid) {
			gone = append(gone, uid)
		}
	}
	if fs.units[function] = there; len(there) == 0 {
		delete(fs.units, function)
	}
	return gone
}

// unitsOf are the units of the function of that UID, the first one made first; or the unit
// of that UID alone.
func (fs *functions) unitsOf(uid string) (units []*function) {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	if f := fs.byUID[uid]; f != nil {
		return []*function{f}
	}
	for _, uid := range fs.units[uid] {
		if f := fs.byUID[uid]; f != nil {
			units = append(units, f)
		}
	}
	return units
}

// lookup is a function, or nil.
func (fs *functions) lookup(uid string) *function {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	return fs.byUID[uid]
}

func (fs *functions) add(f *function) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.byUID[f.uid] = f
}

// remove returns what it removes, or nil.
func (fs *functions) remove(uid string) *function {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.byUID[uid]
	delete(fs.byUID, uid)
	delete(fs.active, f)
	return f
}

func (fs *functions) all() []*function {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	return slices.Collect(maps.Values(fs.byUID))
}

// activate lets the next tick look at a function, unless it was removed.
func (fs *functions) activate(f *function) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.byUID[f.uid] == f {
		fs.active[f] = struct{}{}
	}
}

// park lets ticks pass over a function.
func (fs *functions) park(f *function) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.active, f)
}

// isActive tells whether the next tick looks at a function.
func (fs *functions) isActive(f *function) bool {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	_, active := fs.active[f]
	return active
}

// listActive are the functions that are not idle.
func (fs *functions) listActive() []*function {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	return slices.Collect(maps.Keys(fs.active))
}

// busy tells whether a function of a slot is not idle.
func (fs *functions) busy(slot ownership.Slot) bool {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	for f := range fs.active {
		if f.slot == slot {
			return true
		}
	}
	return false
}
