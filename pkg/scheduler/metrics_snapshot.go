package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// metricsSnapshot has the values of a function's metrics, without those of its instances.
type metricsSnapshot struct {
	key          invocation.FunctionKey
	revision     string
	countedSince time.Time
	view         queue.View
	means        estimate.Means
	counters     counters
	reasonCounters
	plan   lastPlan
	agents summary
	// phases is nil until an instance has started.
	phases *coldstart.Durations
	// executions is nil if no call has run.
	executions *exposition.Histogram
}

// planTTL is for how long a plan is exported when no more calls come. Calls come more rarely
// than decisions, and a decision without new calls makes no plan.
const planTTL = 10 * time.Second

// lastPlan has the inputs of the last decision that computed a number of needed instances.
type lastPlan struct {
	required int
	rate     float64
	horizon  time.Duration
	at       time.Time
}

// after is the plan after another decision. While calls wait, a decider that computes no
// number needs the existing instances and those that it creates.
func (t lastPlan) after(d autoscaler.Decision, s autoscaler.Snapshot, now time.Time) lastPlan {
	next := lastPlan{d.Required, d.Rate, d.Horizon, now}
	if next.required == 0 && s.Waiting() > 0 {
		next.required = s.Created + s.Creating + d.Create
	}
	if next.required == 0 && t.valid(now) {
		return t
	}
	return next
}

// valid reports whether the plan is recent enough to export.
func (t lastPlan) valid(now time.Time) bool {
	return t.required > 0 && now.Sub(t.at) < planTTL
}

// metricsSnapshot reads the values of a function's metrics.
func (f *function) metricsSnapshot(now time.Time) metricsSnapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := metricsSnapshot{
		key: f.key, revision: f.revision, countedSince: f.countedSince, view: f.core.View(now), means: f.core.Means(),
		counters: f.stats.counters, reasonCounters: f.stats.byReason.clone(), plan: f.stats.plan, agents: f.stats.reports.sum(),
		executions: f.stats.executions.Clone(),
	}
	if f.stats.startPhases != nil {
		spent := *f.stats.startPhases
		r.phases = &spent
	}
	return r
}
