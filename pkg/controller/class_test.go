package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

func TestLatencyCriticalIsARightOfNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		class   v1alpha1.SchedulingClass
		allowed []string
		want    metav1.ConditionStatus
	}{
		"nobody may":          {v1alpha1.ClassLatencyCritical, nil, metav1.ConditionFalse},
		"others may":          {v1alpha1.ClassLatencyCritical, []string{"tea", "teams"}, metav1.ConditionFalse},
		"the namespace may":   {v1alpha1.ClassLatencyCritical, []string{"other", "team"}, metav1.ConditionTrue},
		"everybody may":       {v1alpha1.ClassLatencyCritical, []string{"*"}, metav1.ConditionTrue},
		"batch is no right":   {v1alpha1.ClassBatch, nil, ""},
		"nor is the default":  {"", nil, ""},
		"nor is it if it may": {v1alpha1.ClassStandard, []string{"team"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(func(in *input) {
				in.function.Spec.Template.Scheduling.Class = c.class
				in.classes = classes{ordered: true, latencyCritical: c.allowed}
				in.revisions = []*v1alpha1.FunctionRevision{revisionOf(in.function)}
			})
			status := statusIn(in)
			got := findCondition(status.Conditions, v1alpha1.ConditionSchedulingClass)
			if got.Status != c.want {
				t.Errorf("got %+v, want status %q", got, c.want)
			}
			without := given(func(*input) {})
			ready := statusIn(without)
			if was, is := findCondition(ready.Conditions, v1alpha1.ConditionReady), findCondition(status.Conditions, v1alpha1.ConditionReady); was.Status != is.Status {
				t.Errorf("the class makes Ready %s, without it is %s", is.Status, was.Status)
			}
			if c.want != metav1.ConditionFalse {
				return
			}
			if got.Reason != v1alpha1.ReasonNotPermitted || !strings.Contains(got.Message, "counts as Standard") ||
				!strings.Contains(got.Message, "nodeAgent.latencyCriticalNamespaces") {
				t.Errorf("%+v does not say what to do", got)
			}
			told := false
			for _, e := range transitions(&v1alpha1.FunctionStatus{}, &status) {
				told = told || e.reason == v1alpha1.ReasonNotPermitted && e.warning
			}
			if !told {
				t.Error("no Event says it")
			}
		})
	}
}

func TestNothingThatIsAskedForHasAnEffectWithoutNodeAgents(t *testing.T) {
	for name, c := range map[string]struct {
		asks v1alpha1.Scheduling
		want string
	}{
		"latency-critical, though it may be": {v1alpha1.Scheduling{Class: v1alpha1.ClassLatencyCritical}, "class LatencyCritical has no effect"},
		"batch":                              {v1alpha1.Scheduling{Class: v1alpha1.ClassBatch}, "class Batch has no effect"},
		"a slice":                            {v1alpha1.Scheduling{Class: v1alpha1.ClassStandard, Slice: v1alpha1.Duration{Duration: 50 * time.Millisecond}}, "slice 50ms has no effect"},
		"nothing":                            {v1alpha1.Scheduling{Class: v1alpha1.ClassStandard}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ordered := range []bool{false, true} {
				status := statusIn(given(func(in *input) {
					in.function.Spec.Template.Scheduling = c.asks
					in.classes = classes{ordered: ordered, latencyCritical: []string{wellknown.AllNamespaces}}
					in.revisions = []*v1alpha1.FunctionRevision{revisionOf(in.function)}
				}))
				got := findCondition(status.Conditions, v1alpha1.ConditionSchedulingClass)
				if off := got.Reason == v1alpha1.ReasonNodeSchedulingOff; off != (!ordered && c.want != "") {
					t.Errorf("with node agents %v it says %+v", ordered, got)
				} else if off && (got.Status != metav1.ConditionFalse || !strings.HasPrefix(got.Message, c.want) || !strings.Contains(got.Message, "nodeAgent.enabled=true")) {
					t.Errorf("%+v does not say what to do", got)
				}
			}
		})
	}
}
