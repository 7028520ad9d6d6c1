package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/estimate"
)

// Recall returns what a function's status says was learnt of it, so that a scheduler
// that takes it over need not begin anew. A status that is not about the function as it
// is now says nothing: what it runs may be another program.
func (s *Source) Recall(fn *v1alpha1.Function) estimate.Means {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := s.functions[fn.Key()]
	if written == nil || written.UID != fn.UID || written.Status.ObservedGeneration != fn.Generation {
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
