package rollout

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Entry is a function with its units and routes. It is shared; readers must not change it.
type Entry struct {
	// Function is as its author wrote it, with its defaults.
	Function *v1alpha1.Function
	// Units are the revisions that have calls, that are being proven, or that had all calls
	// last and are kept for a return. Each is a function of its own: with the UID of the
	// FunctionRevision, its template, and its part of the function's limits on calls and
	// instances. The oldest comes first. The name, the namespace and the generation are the
	// function's.
	Units []*v1alpha1.Function
	// Routes are the parts of the calls.
	Routes []Route
}

// Key is the function's name and namespace.
func (e *Entry) Key() invocation.FunctionKey { return e.Function.Key() }

// UID is the function's.
func (e *Entry) UID() string { return string(e.Function.UID) }

// DrawStep is added to the last drawn number to get the next: the golden ratio of all numbers.
// In such a sequence the share of each unit is exact to within a few calls, where random
// numbers would be off by the square root of their count, and the sequence has no short period
// that the order of the calls could follow. It is odd, so that every number occurs.
const DrawStep uint32 = 2_654_435_769

// Pick is the unit of a call without a tag, given a number drawn from all 32-bit numbers: each
// unit gets its weight's share of them. It is nil if the function cannot be called yet.
func (e *Entry) Pick(draw uint32) *v1alpha1.Function {
	var all uint64
	for _, r := range e.Routes {
		all += uint64(r.Weight)
	}
	at := uint64(draw) * all >> 32
	for _, r := range e.Routes {
		weight := uint64(r.Weight)
		if at < weight {
			return r.Unit
		}
		at -= weight
	}
	return nil
}

// Route is a part of a function's calls.
type Route struct {
	// Tag that calls name for it, or "".
	Tag string
	// Weight in percent of the calls that name none. Those of all routes are 100.
	Weight int32
	// Unit to which they go.
	Unit *v1alpha1.Function
}

// Compose makes the entry of a function, which has its defaults and its status, and of its
// revisions. Without revisions, and while its status names no traffic, the entry has no
// routes, and the function cannot be called yet.
func Compose(f *v1alpha1.Function, revisions []*v1alpha1.FunctionRevision) *Entry {
	e := &Entry{Function: f}
	own := ofFunction(f, revisions)
	if len(own) == 0 {
		return e
	}
	weights := make(map[string]int32)
	for _, part := range f.Status.Traffic {
		weights[part.RevisionName] += part.Weight
	}
	kept := lastServed(own, weights)
	units := make(map[string]*v1alpha1.Function)
	for _, r := range own {
		weight, called := weights[r.Name]
		share := Share{
			Weight:  weight,
			Called:  called,
			Proving: keptForProof(f, r),
		}
		if called || share.Proving || r == kept {
			units[r.Name] = Unit(f, r, share)
			e.Units = append(e.Units, units[r.Name])
		}
	}
	for _, part := range f.Status.Traffic {
		if unit := units[part.RevisionName]; unit != nil {
			e.Routes = append(e.Routes, Route{Tag: part.Tag, Weight: part.Weight, Unit: unit})
		}
	}
	return e
}

// Alone is the entry of a function without revisions.
func Alone(f *v1alpha1.Function) *Entry {
	return &Entry{Function: f, Units: []*v1alpha1.Function{f}, Routes: []Route{{Weight: 100, Unit: f}}}
}

// lastServed is the revision that had all calls and lost its calls last. Its instances stay as long
// as idle ones do, so that a return to it is warm. A revision that has no calls by the function's status
// and some by its own is losing them now: the two statuses arrive separately.
func lastServed(own []*v1alpha1.FunctionRevision, weights map[string]int32) *v1alpha1.FunctionRevision {
	var last *v1alpha1.FunctionRevision
	for _, r := range own {
		switch {
		case weights[r.Name] > 0 || r.Status.FullTrafficTime.IsZero():
			continue
		case meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionActive):
			return r
		case r.InactiveSince().IsZero():
			continue
		}
		if last == nil || last.InactiveSince().Before(r.InactiveSince()) {
			last = r
		}
	}
	return last
}

// keptForProof reports whether a revision needs an instance until it is proven: until the
// function's status says so, and calls go to it. Its own status says so earlier, and the
// instance would leave in between. One that got its calls without a proof has them already.
func keptForProof(f *v1alpha1.Function, r *v1alpha1.FunctionRevision) bool {
	return f.Spec.Rollout.Verify == v1alpha1.VerifyOneInstance &&
		r.Name == f.Status.LatestCreatedRevisionName && (r.Name != f.Status.LatestReadyRevisionName || !r.Proven())
}

// Share is what one revision has of its function.
type Share struct {
	// Weight in percent of the calls.
	Weight int32
	// Called says that calls are routed to it, if only by its tag.
	Called bool
	// Proving says that one instance is wanted in any case, to see that it starts.
	Proving bool
}

// Unit is a revision as a function of its own. It shares what it can with both, since most
// functions that a process holds are idle.
func Unit(f *v1alpha1.Function, r *v1alpha1.FunctionRevision, share Share) *v1alpha1.Function {
	u := *f
	u.UID, u.ResourceVersion, u.ManagedFields, u.Finalizers = r.UID, "", nil, nil
	u.Status = v1alpha1.FunctionStatus{}
	u.Spec.Template = r.Spec.Template
	u.Spec.Traffic, u.Spec.Expose = nil, v1alpha1.Expose{}
	u.Annotations = make(map[string]string, len(f.Annotations)+3)
	maps.Copy(u.Annotations, f.Annotations)
	u.Annotations[v1alpha1.AnnotationRevision] = r.Label()
	u.Annotations[v1alpha1.AnnotationFunctionUID] = string(f.UID)
	splitLimits(&u.Spec, share)
	if share.Proving {
		keepOneInstance(&u)
	}
	return &u
}

// keepOneInstance lets a unit have one instance at least.
func keepOneInstance(u *v1alpha1.Function) {
	if scaling := &u.Spec.Scaling; scaling.MinInstances == 0 {
		scaling.MinInstances, u.Annotations[v1alpha1.AnnotationProving] = 1, "true"
	}
}

// splitLimits reduces the function's limits on calls and instances to the revision's part. One
// that gets only calls to its tag has one percent of the limits: clients choose the tag, and would
// have each limit once more. A revision without calls keeps the whole limits: calls that still wait
// for it may need them.
func splitLimits(spec *v1alpha1.FunctionSpec, share Share) {
	calls, scaling := &spec.Calls, &spec.Scaling
	if share.Called {
		percent := max(share.Weight, 1)
		calls.MaxInFlight = percentOf(calls.MaxInFlight, percent)
		calls.Rate.Requests = percentOf(calls.Rate.Requests, percent)
		calls.Rate.Burst = percentOf(calls.Rate.Burst, percent)
		if scaling.MaxInstances != nil {
			scaling.MaxInstances = new(percentOf(*scaling.MaxInstances, percent))
		}
	}
	scaling.MinInstances = percentOf(scaling.MinInstances, share.Weight)
	windows := scaling.Windows
	scaling.Windows = nil
	for _, w := range windows {
		if w.MinInstances = percentOf(w.MinInstances, share.Weight); w.MinInstances > 0 {
			scaling.Windows = append(scaling.Windows, w)
		}
	}
	if !share.Called && !share.Proving {
		// It gets no calls any more, so it learns no idle times, and its last instance does
		// not stay longer than others.
		idle := scaling.ScaleDown.IdleTimeout
		scaling.ScaleDown = v1alpha1.ScaleDown{Policy: v1alpha1.ScaleDownFixed, IdleTimeout: idle, LastInstanceIdleTimeout: idle}
	}
}

// percentOf is a percentage of a number, rounded up.
func percentOf(n, percent int32) int32 { return int32((int64(n)*int64(percent) + 99) / 100) }
