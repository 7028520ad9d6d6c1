package scheduler

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

// Most functions are idle, so what a scheduler keeps of an idle one is small. A function rests while
// ticks pass over it and no agent has a stream: it has no unit then, only the catalog's packed entry,
// which is opened when the unit is needed. A function that had a stream rests from the next audit on, when
// no handler of its streams runs any more.

// unit is a revision's function with values that ticks use again and again. It is replaced,
// never changed.
type unit struct {
	// entry is kept so that all who use the unit share it; nil for a warm pool.
	entry *rollout.Entry
	fn    *v1alpha1.Function
	// shape says which nodes fit an instance, and shareKey names the function among those of its
	// namespace that take turns for room.
	shape    capacity.Shape
	shareKey string
}

// opener makes units when they are needed.
type opener struct {
	nodes NodeView
	// runtimes is nil if there are none.
	runtimes Runtimes
}

func (o *opener) unitOf(entry *rollout.Entry, fn *v1alpha1.Function) *unit {
	return &unit{entry: entry, fn: fn, shape: shapeOf(fn, o.nodes), shareKey: cmp.Or(fn.FunctionRevisionName(), fn.Name)}
}

// mayUseSpares reports whether functions of a ClusterRuntime may use spare instances. Shares of warm
// pools are computed again and again from all such functions, so these do not rest.
func (o *opener) mayUseSpares(kind string) bool {
	if o.runtimes == nil || kind == "" {
		return false
	}
	rt, known := o.runtimes.Get(kind)
	return known && len(rt.Spec.WarmPools) > 0
}

// outline is what reports, metrics and audits need of every unit again and again, so that they open
// none for it.
type outline struct {
	key        invocation.FunctionKey
	revision   string
	generation int64
	// kind is that of kindOf.
	kind string
}

func outlineOf(fn *v1alpha1.Function) outline {
	return outline{key: fn.Key(), revision: fn.Revision(), generation: fn.Generation, kind: kindOf(fn)}
}

// news is a unit of an entry that the catalog has sent.
type news struct {
	entry  *rollout.Entry
	packed *catalog.Packed[rollout.Entry] // nil if the catalog does not pack
	fn     *v1alpha1.Function
}

// accept replaces the function's unit. The caller holds the lock.
func (f *function) accept(n news) {
	f.unit, f.packed, f.outline = f.opener.unitOf(n.entry, n.fn), n.packed, outlineOf(n.fn)
}

// isSame reports whether a unit says what the present one does, and if so goes on with its entry: the
// one before takes memory as long as somebody keeps it.
func (f *function) isSame(n news) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := f.opened().fn; before != n.fn && !equality.Semantic.DeepEqual(before, n.fn) {
		return false
	}
	if f.packed = n.packed; f.unit != nil {
		f.unit = f.opener.unitOf(n.entry, n.fn)
	}
	return true
}

// opened is the present unit, which is not kept while the function rests. The caller holds the lock.
func (f *function) opened() *unit {
	if f.unit != nil {
		return f.unit
	}
	entry := f.packed.Open()
	at := slices.IndexFunc(entry.Units, func(u *v1alpha1.Function) bool { return uidOf(u) == f.uid })
	return f.opener.unitOf(entry, entry.Units[at]) // accept has got it from there
}

// settle lets the function rest if nothing is to be done for it, and keeps its unit if something is.
// The caller holds the lock.
func (f *function) settle() {
	f.met = f.met || len(f.streams) > 0
	switch {
	case f.met || !f.core.IsParked() || f.packed == nil:
		f.unit = f.opened()
	case f.unit != nil && !f.opener.mayUseSpares(f.kind):
		f.unit = nil
	}
}

// awake is the latest version of a function, which stays open while it may use spare instances.
func (f *function) awake() *v1alpha1.Function {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unit = f.opened()
	return f.fn
}

// restAll lets functions rest whose last stream has ended.
func (s *auditor) restAll() {
	streaming := make(map[string]bool)
	for key := range s.streams.keys() {
		streaming[key.FunctionUID] = true
	}
	for _, f := range s.all() {
		if !streaming[f.uid] {
			f.forgetStreams()
		}
	}
}

// forgetStreams lets a function rest again that had streams.
func (f *function) forgetStreams() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.met {
		f.met = false
		f.settle()
	}
}

// about is what is known of the unit without opening it.
func (f *function) about() outline {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outline
}
