package scheduler

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// Status is what the scheduler observes of a function, or of a single unit. The instances are
// those of all its units; the condition is that of the primary unit.
func (s *reporter) Status(fn *v1alpha1.Function) v1alpha1.FunctionStatus {
	units := s.functions.unitsOf(uidOf(fn))
	first := s.primary(units)
	if first == nil {
		return v1alpha1.FunctionStatus{}
	}
	status := v1alpha1.FunctionStatus{
		ObservedGeneration: first.about().generation,
		Conditions:         []metav1.Condition{s.ready(first, s.deps.Instances.Observe(first.uid))},
	}
	for _, f := range units {
		seen := s.deps.Instances.Observe(f.uid)
		status.Instances.Ready += int32(seen.Created)
		status.Instances.Desired += int32(seen.Created + seen.Creating)
	}
	return status
}

// load is the load of the units that are served here; the means are those of the primary one.
func (s *reporter) load(units []*function, primary *function) *decisionlog.Load {
	means := primary.means().Round(10 * time.Microsecond)
	load := &decisionlog.Load{MeanExecution: means.Execution.Seconds(), MeanStart: means.Start.Seconds()}
	for _, f := range units {
		if _, served := s.syncOwnership(f); !served {
			continue
		}
		seen, view := s.deps.Instances.Observe(f.uid), f.view(s.deps.Now())
		load.Creating += seen.Creating
		load.Busy += min(view.Busy, seen.Created)
		load.Idle += max(0, seen.Created-view.Busy)
		load.Waiting += view.Waiting
	}
	return load
}

// ready is the Ready condition. It describes the version of the function that the scheduler
// has applied, which may be older than the requested one.
func (s *reporter) ready(f *function, seen provisioner.Observation) metav1.Condition {
	generation, since, started := f.state()
	c := metav1.Condition{
		Type:               v1alpha1.ConditionReady,
		Status:             metav1.ConditionTrue,
		Reason:             v1alpha1.ReasonAccepted,
		Message:            v1alpha1.MessageAccepted,
		ObservedGeneration: generation,
		// The state before that is unknown: the function may have failed until then.
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

// state returns the generation of the unit, when this scheduler learned of it, and whether
// an instance of it has started.
func (f *function) state() (generation int64, since time.Time, started bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.generation, f.stats.since, f.stats.started
}

// Known returns the facts about a unit's instances for a rollout that is decided in the same
// process. Other processes get them from Watch.
func (s *reporter) Known(unit *v1alpha1.Function) rollout.Observation {
	f := s.lookup(uidOf(unit))
	if f == nil {
		return rollout.Observation{}
	}
	n := s.facts(f)
	known := rollout.Observation{
		Observed: true, Generation: n.generation, Started: n.started, Ready: int64(n.created),
		NoRoom: n.noRoom, Unconfirmed: n.unconfirmed,
	}
	if n.problem != "" {
		known.Failure = &rollout.Failure{Reason: n.problem, Message: n.detail}
	}
	return known
}
