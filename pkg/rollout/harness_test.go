package rollout

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// harness keeps a function and its revisions, and carries out what Decide wants.
type harness struct {
	t         testing.TB
	now       time.Time
	f         *v1alpha1.Function
	revisions []*v1alpha1.FunctionRevision
	plan      Plan
}

func newHarness(t testing.TB) *harness {
	w := &harness{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), f: &v1alpha1.Function{
		ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "thumbnail", UID: "f"},
	}}
	v1alpha1.Default(w.f)
	return w
}

// change changes the function's spec.
func (w *harness) change(how func(*v1alpha1.FunctionSpec)) {
	how(&w.f.Spec)
	w.f.Generation++
	w.converge()
}

func (w *harness) deploy(image string) {
	w.change(func(s *v1alpha1.FunctionSpec) { s.Template.Image = image })
}

func (w *harness) advance(d time.Duration) {
	w.now = w.now.Add(d)
	w.converge()
}

// prove lets an instance of a revision start.
func (w *harness) prove(name string) {
	r := w.named(name)
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Started", LastTransitionTime: metav1.NewTime(w.now),
	})
	w.converge()
}

func (w *harness) lose(name string) {
	w.revisions = slices.DeleteFunc(w.revisions, func(r *v1alpha1.FunctionRevision) bool { return r.Name == name })
}

func (w *harness) named(name string) *v1alpha1.FunctionRevision {
	for _, r := range w.revisions {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// converge carries out plans until there is nothing to do.
func (w *harness) converge() {
	w.t.Helper()
	for range 10 {
		plan := Decide(w.now, w.f, w.revisions)
		same := plan.Create == nil && len(plan.Remove) == 0 && equality.Semantic.DeepEqual(StateOf(w.f), plan.State)
		w.plan = plan
		if same {
			return
		}
		if plan.Create != nil {
			plan.Create.UID = types.UID(plan.Create.Name)
			w.revisions = append(w.revisions, plan.Create)
			continue
		}
		plan.State.Write(&w.f.Status)
		for _, name := range plan.Remove {
			w.lose(name)
		}
		w.record()
	}
	w.t.Fatalf("there is always something to do: %+v", w.plan)
}

// record writes down which revisions have calls.
func (w *harness) record() {
	for _, r := range w.revisions {
		weight := w.weight(r.Name)
		active := metav1.Condition{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: "NoTraffic", LastTransitionTime: metav1.NewTime(w.now)}
		if weight > 0 {
			active.Status, active.Reason = metav1.ConditionTrue, "Traffic"
		}
		meta.SetStatusCondition(&r.Status.Conditions, active)
		if weight == 100 && r.Status.FullTrafficTime.IsZero() {
			r.Status.FullTrafficTime = metav1.NewTime(w.now)
		}
	}
}

func (w *harness) weight(name string) int32 {
	sum := int32(0)
	for _, part := range w.f.Status.Traffic {
		if part.RevisionName == name {
			sum += part.Weight
		}
	}
	return sum
}

// expect compares where calls go, as pairs of a revision's name and a weight.
func (w *harness) expect(phase Phase, traffic ...v1alpha1.TrafficStatus) {
	w.t.Helper()
	if w.plan.Phase != phase || !slices.Equal(w.f.Status.Traffic, traffic) {
		w.t.Fatalf("phase %d, traffic %v; want phase %d, traffic %v", w.plan.Phase, w.f.Status.Traffic, phase, traffic)
	}
}

func to(number string, weight int32) v1alpha1.TrafficStatus {
	return v1alpha1.TrafficStatus{RevisionName: "thumbnail-" + number, Weight: weight}
}
