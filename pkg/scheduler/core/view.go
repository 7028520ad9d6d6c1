package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// View describes the queue.
func (f *Function) View(now time.Time) queue.View { return f.queue.View(now) }

// Waiting is how many tickets wait.
func (f *Function) Waiting() int { return f.queue.Waiting() }

// IsWaiting tells whether the ticket of an invocation waits.
func (f *Function) IsWaiting(id invocation.ID) bool { return f.queue.IsWaiting(id) }

// Means are what was learnt of the function.
func (f *Function) Means() estimate.Means {
	return estimate.Means{Execution: f.estimates.executions.Mean(), Start: f.estimates.starts.Mean()}
}

// Spec is what the owner of the function asks for.
func (f *Function) Spec() Spec { return f.spec }

// estimates is how long the last executions and starts took.
type estimates struct{ executions, starts estimate.LastN }

func newEstimates(c *Config) estimates {
	return estimates{executions: *estimate.NewLastN(c.Executions), starts: *estimate.NewLastN(c.Executions)}
}

// meanStart is how long an instance takes to start: as the last ones did, or else as
// those of its kind, within the timeout; 0 if that is not known either.
func (l *estimates) meanStart(kind, timeout time.Duration) time.Duration {
	if own := l.starts.Mean(); own > 0 {
		return own
	}
	return min(kind, timeout)
}
