package kube

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/estimate"
)

// Recall returns what the status of a unit's function says was learnt of it, so that a
// scheduler that takes it over need not begin anew. A status that is not about the function
// as it is now says nothing, nor does it of a revision that has no calls: what was learnt
// is of those that have, and this may be another program.
func (s *Source) Recall(unit *v1alpha1.Function) estimate.Means {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := s.functions[unit.Key()]
	if written == nil || string(written.UID) != unit.FunctionUID() || written.Status.ObservedGeneration != unit.Generation ||
		!hasCalls(written, unit.FunctionRevisionName()) {
		return estimate.Means{}
	}
	return estimate.Means{
		Execution: learnt(written.Status.MeanExecutionTime),
		Start:     learnt(written.Status.MeanStartTime),
	}
}

// hasCalls tells whether some of a function's calls go to a revision.
func hasCalls(fn *v1alpha1.Function, revision string) bool {
	return slices.ContainsFunc(fn.Status.Traffic, func(t v1alpha1.TrafficStatus) bool { return t.RevisionName == revision && t.Weight > 0 })
}

// learnt is what a status says, or 0.
func learnt(mean *metav1.Duration) time.Duration {
	if mean == nil {
		return 0
	}
	return max(0, mean.Duration)
}
