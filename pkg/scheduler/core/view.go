package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// View describes the queue.
func (f *Function) View(now time.Time) queue.View { return f.queue.View(now) }

// Waiting is the number of waiting tickets.
func (f *Function) Waiting() int { return f.queue.Waiting() }

// IsWaiting reports whether the ticket of an invocation waits.
func (f *Function) IsWaiting(id invocation.ID) bool { return f.queue.IsWaiting(id) }

// Means are the mean execution and start times.
func (f *Function) Means() estimate.Means {
	return estimate.Means{Execution: f.estimates.executions.Mean(), Start: f.estimates.starts.Mean()}
}

// Spec returns the present settings.
func (f *Function) Spec() Spec { return f.spec }

// estimates are the last execution and start times.
type estimates struct{ executions, starts estimate.LastN }

func newEstimates(c *Config) estimates {
	return estimates{executions: *estimate.NewLastN(c.Executions), starts: *estimate.NewLastN(c.Executions)}
}

// meanStart is the mean start time of the function's instances, or else of its
// ClusterRuntime's, bounded by the timeout; 0 if neither is known.
func (l *estimates) meanStart(kind, timeout time.Duration) time.Duration {
	if own := l.starts.Mean(); own > 0 {
		return own
	}
	return min(kind, timeout)
}
