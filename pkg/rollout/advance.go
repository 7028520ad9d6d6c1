package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/schedule"
)

// Observation is the observed state of a revision's instances.
type Observation struct {
	// Observed says that a scheduler reports it. If not, the rest is zero.
	Observed bool
	// Generation of the function that this scheduler has taken up.
	Generation int64
	// Started says that an instance of it has started.
	Started bool
	// Failure says why its instances do not start; nil if they do.
	Failure *Failure
	// NoRoom says why no node has room for the instances that it should have; "" if one
	// has.
	NoRoom string
	// Unconfirmed says that etcd cannot be reached, so that few instances are created.
	Unconfirmed bool
	// Ready instances can be called.
	Ready int64
}

// Failure says why something is not as it should be.
type Failure struct {
	// Reason is one of the reasons of conditions.
	Reason string
	// Message explains it to people, with the function's last log lines if available.
	Message string
}

// Advance decides what to do with the revisions, given the observations of their instances,
// and returns the plan and the revisions after it. These are copies of the function's own
// revisions, by number. Write their statuses before that of the function.
func Advance(now time.Time, f *v1alpha1.Function, revisions []*v1alpha1.FunctionRevision, units map[string]Observation) (Plan, []*v1alpha1.FunctionRevision) {
	var own []*v1alpha1.FunctionRevision
	for _, r := range ofFunction(f, revisions) {
		r = r.DeepCopy()
		recordInstances(now, f, r, units[r.Name])
		own = append(own, r)
	}
	plan := Decide(now, f, own)
	if plan.Create != nil {
		return plan, own
	}
	weights := make(map[string]int32)
	for _, part := range plan.State.Traffic {
		weights[part.RevisionName] += part.Weight
	}
	for _, r := range own {
		recordTraffic(now, r, weights[r.Name])
		if !units[r.Name].Observed {
			plan.sooner(observeTimeLeft(now, r))
		}
	}
	if _, until := minInstances(now, f); !until.IsZero() {
		plan.sooner(until.Sub(now))
	}
	return plan, own
}

// sooner lets there be something to decide in d, unless d is 0.
func (p *Plan) sooner(d time.Duration) {
	if d > 0 && (p.Again == 0 || d < p.Again) {
		p.Again = d
	}
}

// minInstances is the minimum number of instances of a function, and until when it is at least
// that; zero if it does not depend on the time.
func minInstances(now time.Time, f *v1alpha1.Function) (least int64, until time.Time) {
	open, until := schedule.Floor(f.Spec.Scaling.Calendar(), now)
	return max(int64(f.Spec.Scaling.MinInstances), int64(open)), until
}

// observeTimeout is how long a scheduler has to report a revision after that got calls.
const observeTimeout = 10 * time.Second

// observeTimeLeft is how long they have yet; 0 if the time is over, or the revision has no calls.
func observeTimeLeft(now time.Time, r *v1alpha1.FunctionRevision) time.Duration {
	active := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionActive)
	if active == nil || active.Status != metav1.ConditionTrue {
		return 0
	}
	return max(observeTimeout-now.Sub(active.LastTransitionTime.Time), 0)
}

// recordInstances writes the observed instances into a revision's status.
func recordInstances(now time.Time, f *v1alpha1.Function, r *v1alpha1.FunctionRevision, u Observation) {
	r.Status.Selector = wellknown.LabelRevisionUID + "=" + string(r.UID)
	if u.Observed {
		r.Status.Instances.Ready = int32(u.Ready)
	}
	setCondition(now, r, readyCondition(f, r, u))
}

// recordTraffic writes into a revision's status which part of the calls goes to it.
func recordTraffic(now time.Time, r *v1alpha1.FunctionRevision, weight int32) {
	active := condition(v1alpha1.ConditionActive, metav1.ConditionFalse, v1alpha1.ReasonNoCalls, "no calls go to it, except those that name its tag")
	if weight > 0 {
		active = condition(v1alpha1.ConditionActive, metav1.ConditionTrue, v1alpha1.ReasonServing, "calls go to it")
	}
	setCondition(now, r, active)
	if weight == 100 && r.Status.FullTrafficTime.IsZero() {
		r.Status.FullTrafficTime = metav1.NewTime(now).Rfc3339Copy()
	}
}

// setCondition sets a condition. It is about a template that cannot change, and so about no
// generation: that counts only how often spec.instances was written.
func setCondition(now time.Time, r *v1alpha1.FunctionRevision, c metav1.Condition) {
	c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	c.Message = excerpt(c.Message)
	r.Status.Conditions = slices.Clone(r.Status.Conditions)
	meta.SetStatusCondition(&r.Status.Conditions, c)
}

// readyCondition is the condition Ready of a revision. A proven revision stays proven. A
// failed one stays failed until it starts, or until the function returns to it, because the
// cause may be repaired by then.
func readyCondition(f *v1alpha1.Function, r *v1alpha1.FunctionRevision, u Observation) metav1.Condition {
	const kind = v1alpha1.ConditionReady
	was := meta.FindStatusCondition(r.Status.Conditions, kind)
	switch {
	case u.Started || r.Proven():
		return condition(kind, metav1.ConditionTrue, v1alpha1.ReasonStarted, "an instance of it has started")
	case u.Failure != nil:
		return condition(kind, metav1.ConditionFalse, u.Failure.Reason, u.Failure.Message)
	case was != nil && was.Status == metav1.ConditionFalse && !returnsTo(f, r):
		return condition(kind, was.Status, was.Reason, was.Message)
	case f.Spec.Rollout.Verify == v1alpha1.VerifyNone || !r.Is(f):
		return condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonNotVerified, "no instance of it has started, and Windlass starts none to prove it")
	case u.NoRoom != "":
		return condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonVerificationDeferred, "its first instance starts when a node has room: "+u.NoRoom)
	default:
		return condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonVerifying, "its first instance is starting")
	}
}

// returnsTo reports whether the function now has another revision than at the last decision,
// and this is it.
func returnsTo(f *v1alpha1.Function, r *v1alpha1.FunctionRevision) bool {
	return f.Status.Rollout.RevisionName != r.Name && r.Is(f)
}
