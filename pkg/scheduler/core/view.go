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

// Waits tells whether the ticket of an invocation waits.
func (f *Function) Waits(id invocation.ID) bool { return f.queue.IsWaiting(id) }

// Means are what was learnt of the function.
func (f *Function) Means() estimate.Means {
	return estimate.Means{Execution: f.learnt.executions.Mean(), Start: f.learnt.starts.Mean()}
}

// Spec is what the owner of the function asks for.
func (f *Function) Spec() Spec { return f.spec }
