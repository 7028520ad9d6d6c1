package rollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestAnInstanceOfNoUnitMustLeave(t *testing.T) {
	created := time.Unix(1_700_000_000, 0)
	active := func(status metav1.ConditionStatus, after time.Duration) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: status, LastTransitionTime: metav1.NewTime(created.Add(after))}}
	}
	const timeout = time.Minute
	for name, c := range map[string]struct {
		unit       string
		conditions []metav1.Condition
		left       bool
		within     time.Duration
	}{
		"its revision is a unit":             {unit: "r"},
		"another one is":                     {unit: "other", left: true, within: timeout + leaveGrace},
		"calls went to it until later":       {conditions: active(metav1.ConditionFalse, time.Hour), left: true, within: time.Hour + timeout + leaveGrace},
		"calls went to it before it was":     {conditions: active(metav1.ConditionFalse, -time.Hour), left: true, within: timeout + leaveGrace},
		"its status has yet to say they end": {conditions: active(metav1.ConditionTrue, -time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.FunctionRevision{}
			r.UID, r.Spec.Template.Timeout.Duration, r.Status.Conditions = "r", timeout, c.conditions
			unit := &v1alpha1.Function{}
			unit.UID = types.UID(c.unit)
			deadline, left := (&Entry{Units: []*v1alpha1.Function{unit}}).LeaveBy(r, created)
			if left != c.left || left && !deadline.Equal(created.Add(c.within)) {
				t.Errorf("must be gone %v after it was created: %v, want %v: %v", deadline.Sub(created), left, c.within, c.left)
			}
		})
	}
}
