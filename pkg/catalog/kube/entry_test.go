package kube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// revision is that of the function at a generation, with the concurrency 100 and the
// generation.
func revision(generation int64, change ...func(*v1alpha1.FunctionRevision)) *v1alpha1.FunctionRevision {
	fn := function(generation, concurrency(generation))
	v1alpha1.Default(fn)
	r := v1alpha1.NewRevision(fn)
	r.UID = types.UID(fmt.Sprintf("r-%d", generation))
	for _, c := range change {
		c(r)
	}
	return r
}

func concurrency(generation int64) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) { fn.Spec.Template.Concurrency = int32(100 + generation) }
}

// condition is one of a revision since a time in seconds.
func condition(name string, is metav1.ConditionStatus, since int64) func(*v1alpha1.FunctionRevision) {
	return func(r *v1alpha1.FunctionRevision) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: name, Status: is, LastTransitionTime: metav1.Unix(since, 0)})
	}
}

var proven = condition(v1alpha1.ConditionReady, metav1.ConditionTrue, 1)

// full says that all calls went to a revision once.
func full(r *v1alpha1.FunctionRevision) { r.Status.FullTrafficTime = metav1.Unix(1, 0) }

// latest says that the revision of a generation is the latest.
func latest(generation int64) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		fn.Status.LatestCreatedRevisionName = v1alpha1.RevisionName(fn.Name, generation)
	}
}

// ready says that the revision of a generation was the last to be proven.
func ready(generation int64) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		fn.Status.LatestReadyRevisionName = v1alpha1.RevisionName(fn.Name, generation)
	}
}

// traffic routes calls: a generation and a weight, and so on.
func traffic(parts ...int64) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		for i := 0; i < len(parts); i += 2 {
			fn.Status.Traffic = append(fn.Status.Traffic, v1alpha1.TrafficStatus{
				RevisionName: v1alpha1.RevisionName(fn.Name, parts[i]), Weight: int32(parts[i+1]),
			})
		}
	}
}

// tells is what the catalog holds: the routes, and behind them the units.
func tells(s *Source) string {
	e := entry(s)
	if e == nil {
		return "not served"
	}
	var words []string
	for _, r := range e.Routes {
		words = append(words, fmt.Sprintf("%s:%d", r.Unit.Revision(), r.Weight))
	}
	words = append(words, "of")
	for _, u := range e.Units {
		words = append(words, fmt.Sprintf("%s(%s)", u.Revision(), u.UID))
	}
	return strings.Join(words, " ")
}

func expect(t *testing.T, s *Source, after, want string) {
	t.Helper()
	if diff := cmp.Diff(want, tells(s)); diff != "" {
		t.Errorf("after %s: %s", after, diff)
	}
}

func TestRevisionsAreSeenBeforeTheirFunctionOrAfterIt(t *testing.T) {
	const want = "00001:90 00002:10 of 00001(r-1) 00002(r-2)"
	fn := function(2, latest(2), traffic(1, 90, 2, 10))
	s := newSource()
	s.revisionChanged(revision(2, proven))
	s.revisionChanged(revision(1, proven))
	expect(t, s, "the revisions", "not served")
	s.functionChanged(fn)
	expect(t, s, "the function", want)

	s = newSource()
	s.functionChanged(fn)
	expect(t, s, "the function", "of")
	s.revisionChanged(revision(1, proven))
	expect(t, s, "one revision", "00001:90 of 00001(r-1)")
	s.revisionChanged(revision(2, proven))
	expect(t, s, "both", want)
	if got := entry(s).Units[0].Spec.Template.Concurrency; got != 101 {
		t.Errorf("the first one's concurrency is %d, want that of its own template", got)
	}
}

func TestCallsGoWhereTheyWentUntilTheRevisionIsSeen(t *testing.T) {
	s := newSource()
	s.functionChanged(function(1, latest(1), traffic(1, 100)))
	s.revisionChanged(revision(1, proven))
	before := entry(s)
	s.functionChanged(function(2, latest(2), traffic(2, 100)))
	if entry(s) != before {
		t.Errorf("calls go to a revision that was not seen: %s", tells(s))
	}
	s.revisionChanged(revision(2))
	expect(t, s, "the revision was seen", "00002:100 of 00002(r-2)")
	// And the other way round: it is gone before it is said where calls go instead.
	before = entry(s)
	s.revisionGone(revision(2))
	if entry(s) != before {
		t.Errorf("calls go nowhere: %s", tells(s))
	}
	s.functionChanged(function(2, latest(1), traffic(1, 100)))
	expect(t, s, "it was said", "00001:100 of 00001(r-1)")
}

func TestARevisionOfAnEarlierFunctionOfTheNameIsNone(t *testing.T) {
	again := func(fn *v1alpha1.Function) { fn.UID = "u-2" }
	s := newSource()
	s.functionChanged(function(1, latest(1), traffic(1, 100)))
	s.revisionChanged(revision(1, proven))
	s.functionGone(function(1))
	expect(t, s, "the end of the function", "not served")
	s.functionChanged(function(1, again, latest(1), traffic(1, 100)))
	expect(t, s, "it was made again", "of")
	s.revisionGone(revision(1, proven))
	s.revisionChanged(revision(1, func(r *v1alpha1.FunctionRevision) { r.UID, r.OwnerReferences[0].UID = "r-9", "u-2" }))
	expect(t, s, "its own revision", "00001:100 of 00001(r-9)")
	s.revisionGone(revision(1, func(r *v1alpha1.FunctionRevision) { r.UID, r.OwnerReferences[0].UID = "r-9", "u-2" }))
	s.functionGone(function(1, again))
	if len(s.revisions)+len(s.functions) != 0 {
		t.Errorf("kept: %v %v", s.functions, s.revisions)
	}
}

func TestOnlyWhatDecidesAboutUnitsIsAChange(t *testing.T) {
	served := func() *Source {
		s := newSource()
		s.functionChanged(function(2, latest(2), ready(2), traffic(1, 90, 2, 10)))
		s.revisionChanged(revision(1, proven))
		s.revisionChanged(revision(2, proven))
		return s
	}
	for name, tc := range map[string]struct {
		happen func(*Source)
		// changed are the units that are others than before, of all that there are.
		changed string
		entry   bool
	}{
		"counts of the function": {happen: func(s *Source) {
			s.functionChanged(function(2, latest(2), ready(2), traffic(1, 90, 2, 10), func(fn *v1alpha1.Function) {
				fn.Status.Instances.Ready, fn.Status.Instances.Desired, fn.Status.ObservedGeneration = 7, 3, 2
			}))
		}},
		"counts of a revision": {happen: func(s *Source) {
			s.revisionChanged(revision(1, proven, func(r *v1alpha1.FunctionRevision) {
				r.Status.Instances.Ready, r.Spec.Instances = 4, 4
			}))
		}},
		"a condition's message": {happen: func(s *Source) {
			s.revisionChanged(revision(1, proven, condition("Other", metav1.ConditionTrue, 5)))
		}},
		"the weights": {happen: func(s *Source) {
			s.functionChanged(function(2, latest(2), ready(2), traffic(1, 80, 2, 20), func(fn *v1alpha1.Function) { fn.Status.Instances.Ready = 7 }))
		}, entry: true},
		"a part without calls": {happen: func(s *Source) {
			s.functionChanged(function(2, latest(2), ready(2), traffic(1, 0, 2, 100)))
		}, entry: true},
		"no part": {happen: func(s *Source) {
			s.functionChanged(function(2, latest(2), ready(2), traffic(2, 100)))
		}, entry: true},
		"no part, of one that had all calls": {happen: func(s *Source) {
			s.revisionChanged(revision(1, proven, full, condition(v1alpha1.ConditionActive, metav1.ConditionTrue, 5)))
			s.functionChanged(function(2, latest(2), ready(2), traffic(2, 100)))
		}, changed: "00001", entry: true},
		"a third revision": {happen: func(s *Source) {
			s.functionChanged(function(2, latest(3), ready(2), traffic(1, 90, 2, 10)))
			s.revisionChanged(revision(3))
		}, changed: "00003", entry: true},
		"a third revision that nothing is said of": {happen: func(s *Source) {
			s.revisionChanged(revision(3))
		}},
		"the end of one": {happen: func(s *Source) {
			s.revisionChanged(revision(2, proven, func(r *v1alpha1.FunctionRevision) { r.DeletionTimestamp = new(metav1.Unix(9, 0)) }))
		}, entry: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := served()
			before := entry(s)
			tc.happen(s)
			now := entry(s)
			if changed := now != before; changed != tc.entry {
				t.Fatalf("a change: %t, want %t", changed, tc.entry)
			}
			known := make(map[*v1alpha1.Function]bool)
			for _, u := range before.Units {
				known[u] = true
			}
			var changed []string
			for _, u := range now.Units {
				if !known[u] {
					changed = append(changed, u.Revision())
				}
				known[u] = true
			}
			if diff := cmp.Diff(tc.changed, strings.Join(changed, " ")); diff != "" {
				t.Error(diff)
			}
			for _, r := range now.Routes {
				if !known[r.Unit] {
					t.Errorf("the route of %s has a unit of its own", r.Unit.Revision())
				}
			}
		})
	}
}

func TestWhatProvesARevisionOrTakesItsCallsIsAChange(t *testing.T) {
	s := newSource()
	s.functionChanged(function(2, latest(2), traffic(1, 100)))
	s.revisionChanged(revision(1, proven))
	s.revisionChanged(revision(2))
	if least := entry(s).Units[1].Spec.Scaling.MinInstances; least != 1 {
		t.Errorf("one that is to be proven has a minimum of %d", least)
	}
	s.functionChanged(function(2, latest(2), ready(2), traffic(2, 100)))
	if least := entry(s).Units[0].Spec.Scaling.MinInstances; least != 1 {
		t.Errorf("one that is to be proven, and has its calls, has a minimum of %d", least)
	}
	s.revisionChanged(revision(2, proven))
	if least := entry(s).Units[0].Spec.Scaling.MinInstances; least != 0 {
		t.Errorf("one that has its calls, and is proven, has a minimum of %d", least)
	}
	s.functionChanged(function(2, latest(2), traffic(1, 100)))
	expect(t, s, "the proof", "00001:100 of 00001(r-1) 00002(r-2)")
	s.revisionChanged(revision(1, proven, full, condition(v1alpha1.ConditionActive, metav1.ConditionTrue, 2)))
	s.functionChanged(function(2, latest(2), ready(2), traffic(2, 100)))
	if least := entry(s).Units[1].Spec.Scaling.MinInstances; least != 0 {
		t.Errorf("one that is proven has a minimum of %d", least)
	}
	expect(t, s, "its calls went to the next", "00002:100 of 00001(r-1) 00002(r-2)")
	s.revisionChanged(revision(1, proven, full, condition(v1alpha1.ConditionActive, metav1.ConditionFalse, 5)))
	expect(t, s, "that was said of it too", "00002:100 of 00001(r-1) 00002(r-2)")
	s.functionChanged(function(3, latest(3), ready(3), traffic(3, 100)))
	s.revisionChanged(revision(2, proven, full, condition(v1alpha1.ConditionActive, metav1.ConditionFalse, 7)))
	s.revisionChanged(revision(3, proven))
	expect(t, s, "a third one", "00003:100 of 00002(r-2) 00003(r-3)")
}

func TestAFunctionThatBecomesInvalidIsServedByItsRevisions(t *testing.T) {
	known := func() *Source {
		s := newSource()
		s.revisionChanged(revision(1, proven))
		return s
	}
	limited := func(fn *v1alpha1.Function) { fn.Spec.Calls.MaxInFlight = 50 }
	badCalls := func(fn *v1alpha1.Function) { fn.Spec.Calls.MaxInFlight = -1 }
	const want = "00001:100 of 00001(r-1)"

	s := known()
	s.functionChanged(function(1, limited, latest(1), traffic(1, 100)))
	s.functionChanged(function(2, withoutHandler, badCalls, latest(1), traffic(1, 100)))
	expect(t, s, "a mistake in template and calls", want)
	if got := entry(s).Units[0].Spec.Calls.MaxInFlight; got != 50 {
		t.Errorf("%d calls may be in flight, want what was valid last", got)
	}
	s.functionChanged(function(3, limited, latest(1), traffic(1, 100)))
	expect(t, s, "its correction", want)

	// A program that starts now knows of no better state.
	s = known()
	s.functionChanged(function(2, withoutHandler, limited, latest(1), traffic(1, 100)))
	expect(t, s, "a mistake in the template, seen first", want)
	if got := entry(s).Units[0].Spec.Calls.MaxInFlight; got != 50 {
		t.Errorf("%d calls may be in flight, want what is said", got)
	}
	s = known()
	s.functionChanged(function(2, badCalls, latest(1), traffic(1, 100)))
	expect(t, s, "a mistake in the calls, seen first", "not served")

	// No rule of the API server checks an annotation.
	unknown := func(fn *v1alpha1.Function) {
		fn.Annotations = map[string]string{wellknown.AnnotationAlgorithm: "fpcsch"}
	}
	for name, before := range map[string][]*v1alpha1.Function{
		"an unknown algorithm":             {function(1, limited, latest(1), traffic(1, 100))},
		"an unknown algorithm, seen first": nil,
	} {
		s = known()
		for _, fn := range append(before, function(1, unknown, limited, latest(1), traffic(1, 100))) {
			s.functionChanged(fn)
		}
		expect(t, s, name, want)
		if got := entry(s).Units[0].Algorithm(); got != "" {
			t.Errorf("%s: %q decides", name, got)
		}
	}
}

func TestARevisionThatIsNotValidIsNotServed(t *testing.T) {
	s := newSource()
	s.functionChanged(function(2, latest(2), traffic(1, 100)))
	s.revisionChanged(revision(1, proven))
	s.revisionChanged(revision(2, func(r *v1alpha1.FunctionRevision) { r.Spec.Template.Timeout = v1alpha1.Duration{} }))
	expect(t, s, "one without a timeout", "00001:100 of 00001(r-1)")
}

func TestWhatAFunctionSaysOfBeingAUnitIsNotBelieved(t *testing.T) {
	s := newSource()
	s.functionChanged(function(1, func(fn *v1alpha1.Function) {
		fn.Annotations = map[string]string{v1alpha1.AnnotationRevision: "00009", v1alpha1.AnnotationFunctionUID: "another", v1alpha1.AnnotationProving: "true", "team": "a"}
	}))
	if fn := served(s); fn.FunctionUID() != "u-1" || fn.FunctionRevisionName() != "" || fn.Annotations["team"] != "a" {
		t.Errorf("UID %s, revision %q, annotations %v", fn.FunctionUID(), fn.FunctionRevisionName(), fn.Annotations)
	}
}
