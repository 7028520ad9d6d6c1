package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// Term is the present term; Unserved if this scheduler does not serve the function.
func (f *Function) Term() invocation.Term { return f.term }

// ServedSince is when the present term began; zero if the function was never served.
func (f *Function) ServedSince() time.Time { return f.takenOver }

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

// NeedsRun reports whether a waiting call requires a decision before the next tick. there says
// that the function has instances, or that some are starting.
func (f *Function) NeedsRun(now time.Time, there bool) bool {
	return !f.last.blocked && (!there || f.last.runsOnCall(now))
}

// Blocked reports whether the last decision launched nothing although it wanted to.
func (f *Function) Blocked() bool { return f.last.blocked }

// MinAtLastDecision is how many instances the last decision had to keep.
func (f *Function) MinAtLastDecision() int { return f.last.least }

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
