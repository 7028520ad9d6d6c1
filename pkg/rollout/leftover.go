package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// leaveGrace is how much longer than a call may take an instance has to go by itself.
const leaveGrace = 30 * time.Second

// LeaveBy is when an instance of a revision must be gone that was created at some time;
// left is false as long as the revision is a unit, or calls go to it by its status.
//
// The scheduler that serves a unit lets its instances go when it is none any more. But
// schedulers do not know revisions that are no units: an instance that one of them has
// ordered and that does not start would stay, unseen, for as long as the revision, and the
// revision for as long as the instance.
func (e *Entry) LeaveBy(r *v1alpha1.FunctionRevision, created time.Time) (deadline time.Time, left bool) {
	unit := slices.ContainsFunc(e.Units, func(u *v1alpha1.Function) bool { return u.UID == r.UID })
	since := created
	if active := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionActive); active != nil {
		unit = unit || active.Status == metav1.ConditionTrue
		if active.LastTransitionTime.After(since) {
			since = active.LastTransitionTime.Time
		}
	}
	return since.Add(r.Spec.Template.Timeout.Duration + leaveGrace), !unit
}
