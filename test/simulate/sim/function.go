package sim

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
	"github.com/windlass-dev/windlass/pkg/rollout"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// startupTimeout is how long an instance may take to start.
const startupTimeout = 3 * time.Second

// function is what is called: what its author and the controller keep of it.
type function struct {
	world *World
	index int
	// slot is that of all its units, as if their hashes were the same.
	slot       ownership.Slot
	idempotent bool
	// limits says what bounds its calls. Two in three functions have no limit, so that their
	// instances lend places.
	limits limitKind
	// concurrency is how many calls an instance runs at a time.
	concurrency int
	// decide is its decider.
	decide autoscaler.Decider
	// served is when somebody served it last, or nobody could, and server who did.
	served time.Duration
	server *node
	// namespace is whose it is, and requests what an instance requests of its worker.
	namespace string
	requests  placement.Amount
	// typical is how long most of its calls take, timeout how long any may.
	typical, timeout time.Duration

	// api is nil while it is deleted, and made counts how often it was made.
	api       *v1alpha1.Function
	made      int
	revisions []*v1alpha1.FunctionRevision
	// units are all that there ever were.
	units map[types.UID]*unit
	// entry is what servers hear of, and image the number of the last one that was made.
	entry *rollout.Entry
	image int
	// changed is when all servers have heard of its last change, in the world's time.
	changed time.Duration
	// broke is when an instance last ended for a call that broke or that its function refused.
	broke time.Duration
	// looks counts when the controller is to look again.
	looks int
}

// limitKind is what bounds the calls of a function; none of these is no limit.
type limitKind int

const (
	limitedRate limitKind = iota
	limitedInFlight
)

// limitKinds is how many kinds there are, with those that are no limit.
const limitKinds = 6

// limited tells whether a scheduler must see each call, so that no instance lends anything.
func (f *function) limited() bool { return f.limits <= limitedInFlight }

// unit is one revision of a function.
type unit struct {
	*function
	uid string
	// pool says that its instances are spare ones.
	pool bool
	// broken says that none of its instances ever starts, started that one has, and
	// proven that the controller knows.
	broken, started, proven bool
	// byLoans counts its executions by loans, and counted those that schedulers have heard of.
	byLoans, counted uint64
}

func (w *World) newFunction(i int) *function {
	f := &function{
		world: w, units: make(map[types.UID]*unit), index: i, slot: ownership.SlotOf("function-"+string(rune('a'+i)), 0), idempotent: i%3 == 2, concurrency: 1 + i%2,
		decide:  deciders[(i+w.config.Decider)%len(deciders)].Decide,
		typical: w.between(2*time.Millisecond, 300*time.Millisecond),
	}
	f.timeout = max(time.Second, 10*f.typical)
	f.limits = limitKind((i + w.config.Limit) % limitKinds)
	f.namespace, f.requests = namespaces[i%len(namespaces)], cores(1)
	if i%3 > 0 && w.config.Spares == 0 {
		f.requests = cores(2)
	}
	f.make()
	return f
}

// make is what its author writes at first. Its limits bound only what comes at once.
func (f *function) make() {
	f.made++
	f.image++
	api := &v1alpha1.Function{}
	api.Namespace, api.Name = f.namespace, "f"+decimal(f.index)
	api.UID, api.Generation = types.UID(api.Name+"-"+decimal(f.made)), 1
	spec := &api.Spec
	spec.Template.Image = decimal(f.image)
	spec.Template.Concurrency = int32(f.concurrency)
	spec.Template.Timeout, spec.Template.StartupTimeout = v1alpha1.Duration{Duration: f.timeout}, v1alpha1.Duration{Duration: startupTimeout}
	spec.Scaling.MaxInstances = new(int32(f.world.config.MaxInstances))
	spec.Scaling.ScaleDown.IdleTimeout = v1alpha1.Duration{Duration: idleTimeout}
	switch f.limits {
	case limitedRate:
		spec.Calls.Rate = v1alpha1.Rate{Requests: 10, Burst: 20}
	case limitedInFlight:
		spec.Calls.MaxInFlight = 8
	}
	spec.RevisionHistoryLimit = new(int32(f.index % 2))
	v1alpha1.Default(api)
	f.api, f.revisions = api, nil
	f.reconcile()
}

// spec is what of a unit matters to its core.
func (f *function) spec(u *v1alpha1.Function) core.Spec {
	s := &u.Spec
	return core.Spec{
		Concurrency: f.concurrency, Timeout: f.timeout, StartupTimeout: startupTimeout,
		Decide: f.decide, Min: int(s.Scaling.MinInstances), Max: int(*s.Scaling.MaxInstances),
		Calls: admission.Limits{Concurrency: int(s.Calls.MaxInFlight), Rate: s.Calls.Rate.PerSecond(), Burst: int(s.Calls.Rate.Burst)}, Limited: s.Calls.Limited(),
		BackoffAfter: backoffAfter, IdleTimeout: s.Scaling.ScaleDown.IdleTimeout.Duration, KeepLast: s.Scaling.ScaleDown.LastInstanceIdleTimeout.Duration,
	}
}

// unit is the one of an entry's unit.
func (f *function) unit(u *v1alpha1.Function) *unit { return f.units[u.UID] }

// main is the unit to which most calls go; nil while there is none.
func (f *function) main() *unit {
	if f.entry == nil || len(f.entry.Routes) == 0 {
		return nil
	}
	most := slices.MaxFunc(f.entry.Routes, func(a, b rollout.Route) int { return int(a.Weight - b.Weight) })
	return f.unit(most.Unit)
}

// latest is the unit of the template; nil while there is none.
func (f *function) latest() *unit {
	if f.entry == nil {
		return nil
	}
	for _, u := range f.entry.Units {
		if u.FunctionRevisionName() == f.api.Status.LatestCreatedRevisionName {
			return f.unit(u)
		}
	}
	return nil
}

// runs tells whether a unit is one that servers are to know.
func (f *function) runs(u *unit) bool {
	return f.entry != nil && slices.ContainsFunc(f.entry.Units, func(other *v1alpha1.Function) bool { return f.unit(other) == u })
}

// faulty tells whether something may go wrong by itself.
func (w *World) faulty() bool { return !w.calm && w.config.Faults > 0 }
