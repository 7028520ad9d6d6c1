package scheduler

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// Status is what the scheduler observes of a function, or of a unit alone. Calls and
// instances are those of all its units; the condition and the means are of the one that is
// foremost.
func (s *accounts) Status(fn *v1alpha1.Function) v1alpha1.FunctionStatus {
	units := s.functions.unitsOf(uidOf(fn))
	first := s.foremost(units)
	if first == nil {
		return v1alpha1.FunctionStatus{}
	}
	status := v1alpha1.FunctionStatus{
		ObservedGeneration: first.current().Generation,
		Conditions:         []metav1.Condition{s.ready(first, s.deps.Instances.Observe(first.uid))},
	}
	for _, f := range units {
		seen, view := s.deps.Instances.Observe(f.uid), f.view(s.deps.Now())
		busy := min(view.Busy, seen.Created)
		counts := &status.Instances
		counts.Creating += int32(seen.Creating)
		counts.Created += int32(seen.Created)
		counts.Busy += int32(busy)
		counts.Idle += int32(seen.Created - busy)
		status.Queued += int64(view.Waiting)
	}
	means := first.means().Round(10 * time.Microsecond)
	status.MeanExecutionTime, status.MeanStartTime = unlessZero(means.Execution), unlessZero(means.Start)
	return status
}

// unlessZero is a mean, or nil if it is not known.
func unlessZero(mean time.Duration) *metav1.Duration {
	if mean <= 0 {
		return nil
	}
	return &metav1.Duration{Duration: mean}
}

// ready is the Ready condition. It is about the function that the scheduler has taken
// up, which may be older than the one that is asked about.
func (s *accounts) ready(f *function, seen provisioner.Observation) metav1.Condition {
	fn, since, started := f.state()
	c := metav1.Condition{
		Type:               v1alpha1.ConditionReady,
		Status:             metav1.ConditionTrue,
		Reason:             v1alpha1.ReasonAccepted,
		Message:            v1alpha1.MessageAccepted,
		ObservedGeneration: fn.Generation,
		// What was so before is not known: it may have failed until then.
		LastTransitionTime: metav1.NewTime(since),
	}
	if started {
		c.Reason, c.Message = v1alpha1.ReasonStarted, v1alpha1.MessageStarted
	}
	if why, broken := brokenBy(seen); broken {
		c.Status = metav1.ConditionFalse
		c.Reason = why.Code
		c.Message = why.String()
		c.LastTransitionTime = metav1.NewTime(why.At)
	}
	return c
}

// brokenBy says why a unit cannot run: it has no instance, and its instances do not start.
func brokenBy(seen provisioner.Observation) (why provisioner.StartFailure, broken bool) {
	return seen.Why, seen.Failing && seen.Created == 0
}

// state is the unit as it is now, since when this scheduler knows of it, and whether an
// instance of it has started.
func (f *function) state() (fn *v1alpha1.Function, since time.Time, started bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fn, f.book.since, f.book.started
}
