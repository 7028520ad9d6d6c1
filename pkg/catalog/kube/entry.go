package kube

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

func (s *Source) revisionChanged(object any) {
	r, ok := object.(*v1alpha1.FunctionRevision)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := functionOf(r)
	known := s.revisions[key]
	if known == nil {
		known = make(map[string]*v1alpha1.FunctionRevision)
		s.revisions[key] = known
	}
	before := known[r.Name]
	known[r.Name] = r
	if before == nil || !sameRevision(before, r) {
		s.refreshFunction(key)
	}
}

func (s *Source) revisionGone(object any) {
	r, ok := object.(*v1alpha1.FunctionRevision)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := functionOf(r)
	known := s.revisions[key]
	if delete(known, r.Name); len(known) == 0 {
		delete(s.revisions, key)
	}
	s.refreshFunction(key)
}

// functionOf is the function that a revision names.
func functionOf(r *v1alpha1.FunctionRevision) invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: r.Namespace, Name: r.Spec.FunctionName}
}

// refreshFunction looks again at the function of revisions, if it is known.
func (s *Source) refreshFunction(key invocation.FunctionKey) {
	if fn := s.functions[key]; fn != nil {
		s.publish(fn)
	}
}

// sameFunction reports whether two states of a function make the same entry. Generations
// stand for all of the spec.
func sameFunction(a, b *v1alpha1.Function) bool {
	return a.UID == b.UID && a.Generation == b.Generation &&
		a.Annotations[wellknown.AnnotationAlgorithm] == b.Annotations[wellknown.AnnotationAlgorithm] &&
		a.Status.LatestCreatedRevisionName == b.Status.LatestCreatedRevisionName &&
		a.Status.LatestReadyRevisionName == b.Status.LatestReadyRevisionName &&
		slices.Equal(a.Status.Traffic, b.Status.Traffic)
}

// sameRevision reports whether two states of a revision make the same unit. Its template
// does not change.
func sameRevision(a, b *v1alpha1.FunctionRevision) bool {
	return a.UID == b.UID && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		a.InactiveSince().Equal(b.InactiveSince()) && a.Proven() == b.Proven() &&
		a.Status.FullTrafficTime.IsZero() == b.Status.FullTrafficTime.IsZero() && active(a) == active(b)
}

func active(r *v1alpha1.FunctionRevision) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionActive)
}

// publish lets the catalog have a function and its revisions, unless it is not valid.
func (s *Source) publish(written *v1alpha1.Function) {
	key := written.Key()
	before, _ := s.catalog.Get(key)
	if before != nil && before.Function.UID != written.UID {
		before = nil
	}
	fn, own := s.valid(written, before)
	if fn == nil {
		s.catalog.Remove(key)
		return
	}
	s.lists.Share(&fn.Spec.Template)
	catalog.ShareTemplate(fn, own)
	entry := rollout.Compose(fn, own)
	if before != nil && (lagsRevisions(entry) && !lagsRevisions(before) || shareUnits(entry, before)) {
		return
	}
	s.catalog.Put(entry)
}

// valid returns a function with its defaults and its valid revisions; nil if it cannot be
// served. A function that was changed into an invalid one is served by its revisions as
// before; if its previous state is unknown, only if nothing but its template and its algorithm
// is invalid.
func (s *Source) valid(written *v1alpha1.Function, before *rollout.Entry) (*v1alpha1.Function, []*v1alpha1.FunctionRevision) {
	fn := complete(written, s.runtimes[string(written.Spec.Template.RuntimeRef.Name)])
	problem := invalid(fn)
	own := s.usable(written)
	if problem == nil {
		return fn, own
	}
	log := s.deps.Log.With("function", fn.Key().String(), "err", problem)
	if len(own) > 0 {
		earlier := fn.DeepCopy()
		earlier.Spec.Template = *own[len(own)-1].Spec.Template.DeepCopy()
		if before != nil {
			earlier.Spec, earlier.Generation = *before.Function.Spec.DeepCopy(), before.Function.Generation
			earlier.Annotations = maps.Clone(before.Function.Annotations)
		}
		if invalid(earlier) != nil {
			// An experiment that this release does not know must not cost the function its calls.
			delete(earlier.Annotations, wellknown.AnnotationAlgorithm)
		}
		if invalid(earlier) == nil {
			log.Warn("a function is not valid, and its revisions are served as before")
			return earlier, own
		}
	}
	log.Warn("a function is not valid and is not served")
	return nil, nil
}

// usable are the revisions of a function that can be served, the last one made last. What
// Windlass made can, but others may make some too.
func (s *Source) usable(fn *v1alpha1.Function) []*v1alpha1.FunctionRevision {
	var own []*v1alpha1.FunctionRevision
	for _, r := range s.revisions[fn.Key()] {
		if !r.Of(fn) || !r.DeletionTimestamp.IsZero() {
			continue
		}
		probe := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: fn.Namespace, Name: fn.Name}}
		v1alpha1.Default(probe)
		probe.Spec.Template = r.Spec.Template
		if err := invalid(probe); err != nil {
			s.deps.Log.Warn("a revision is not valid and is not served", "function", fn.Key().String(), "revision", r.Name, "err", err)
			continue
		}
		own = append(own, r)
	}
	slices.SortFunc(own, func(a, b *v1alpha1.FunctionRevision) int {
		return cmp.Or(cmp.Compare(a.Spec.Number, b.Spec.Number), cmp.Compare(a.Name, b.Name))
	})
	return own
}

// invalid says why a function cannot be served, or nil.
func invalid(fn *v1alpha1.Function) error {
	if problems := append(v1alpha1.Validate(fn), v1alpha1.ValidateCluster(fn)...); len(problems) > 0 {
		return problems.ToAggregate()
	}
	return nil
}

// lagsRevisions reports whether a function's status names revisions that were not seen yet, or
// no longer exist: the two kinds of objects arrive separately, and one may be ahead.
func lagsRevisions(e *rollout.Entry) bool {
	return len(e.Function.Status.Traffic) > 0 && !slices.ContainsFunc(e.Routes, func(r rollout.Route) bool { return r.Weight > 0 })
}

// shareUnits makes an entry share the unchanged units of the previous one, so that no watcher
// is woken for them. It reports whether nothing has changed at all.
func shareUnits(e, before *rollout.Entry) (same bool) {
	shared := make(map[*v1alpha1.Function]*v1alpha1.Function)
	same = len(e.Units) == len(before.Units)
	for i, unit := range e.Units {
		at := slices.IndexFunc(before.Units, func(b *v1alpha1.Function) bool { return equality.Semantic.DeepEqual(b, unit) })
		if at < 0 {
			same = false
			continue
		}
		shared[unit] = before.Units[at]
		e.Units[i] = before.Units[at]
	}
	for i, route := range e.Routes {
		if unit := shared[route.Unit]; unit != nil {
			e.Routes[i].Unit = unit
		}
	}
	return same && slices.Equal(e.Routes, before.Routes) && equality.Semantic.DeepEqual(e.Function, before.Function)
}

// complete returns a function with its ClusterRuntime's protocol and the defaults. It keeps
// the part of its status that decides about its revisions.
func complete(written *v1alpha1.Function, rt *v1alpha1.ClusterRuntime) *v1alpha1.Function {
	fn := written.DeepCopy()
	v1alpha1.DefaultFor(fn, rt)
	fn.Status = v1alpha1.FunctionStatus{
		LatestCreatedRevisionName: fn.Status.LatestCreatedRevisionName, LatestReadyRevisionName: fn.Status.LatestReadyRevisionName,
		Traffic: fn.Status.Traffic,
	}
	fn.ManagedFields = nil
	maps.DeleteFunc(fn.Annotations, func(name, _ string) bool { return v1alpha1.OfUnits(name) })
	return fn
}
