package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// View describes the queue, with the calls that gateways report: Waiting, Arrived and Departed
// are the sums of both. Busy adds the instances that the calls by loans, and those beside tickets
// and loans, need at least.
func (f *Function) View(now time.Time) queue.View {
	v := f.queue.View(now)
	v.Waiting += f.reports.waiting
	v.Arrived += f.reports.served + uint64(f.reports.waiting)
	v.Departed += f.reports.served
	if running := f.reports.runningByLoans(f.queue) + v.Untracked; running > 0 {
		concurrency := max(1, f.spec.Concurrency)
		v.Busy = min(v.Busy+(running+concurrency-1)/concurrency, v.Instances)
	}
	return v
}

// Waiting is the number of calls that wait: tickets, and calls without one by the gateways'
// reports.
func (f *Function) Waiting() int { return f.queue.Waiting() + f.reports.waiting }

// Tickets is the number of waiting tickets.
func (f *Function) Tickets() int { return f.queue.Waiting() }

// IsWaiting reports whether the ticket of an invocation waits.
func (f *Function) IsWaiting(id invocation.ID) bool { return f.queue.IsWaiting(id) }

// Means are the mean execution and start times.
func (f *Function) Means() estimate.Means {
	return estimate.Means{Execution: f.estimates.executions.Mean(), Start: f.estimates.starts.Mean()}
}

// IsParked reports whether ticks pass over the function.
func (f *Function) IsParked() bool { return f.activity.parked }

// Spec returns the present settings. It is for simulators.
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
