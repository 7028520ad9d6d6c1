package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/estimate"
)

// Recall returns what the status of a unit's function says was learnt of it, so that a
// scheduler that takes the unit over need not begin anew, nor a new revision with nothing.
func (s *Source) Recall(unit *v1alpha1.Function) estimate.Means {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := s.functions[unit.Key()]
	if written == nil || string(written.UID) != unit.FunctionUID() {
		return estimate.Means{}
	}
	return estimate.Means{
		Execution: learnt(written.Status.MeanExecutionTime),
		Start:     learnt(written.Status.MeanStartTime),
	}
}

// learnt is what a status says, or 0.
func learnt(mean *metav1.Duration) time.Duration {
	if mean == nil {
		return 0
	}
	return max(0, mean.Duration)
}
