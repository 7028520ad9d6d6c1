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

// reading is what is told of a function beside its instances.
type reading struct {
	key invocation.FunctionKey
	// revision is the unit's.
	revision string
	known    time.Time
	view     queue.View
	means    estimate.Means
	tally    tally
	tallies
	terms  terms
	agents summary
	// phases is nil if no instance has started.
	phases *coldstart.Durations
	// executions is nil if no call has run.
	executions *exposition.Histogram
}

// termsStand is for how long what was needed stands when no more calls come. Calls come
// more rarely than decisions are made, and a decision without new calls asks nothing.
const termsStand = 10 * time.Second

// terms are what the last decision was made of that asked how many instances are needed.
type terms struct {
	required int
	rate     float64
	horizon  time.Duration
	at       time.Time
}

// after are the terms after another decision. As long as calls wait, a decider that does
// not ask how many instances are needed needs those that there are and those that it
// creates.
func (t terms) after(d autoscaler.Decision, s autoscaler.Snapshot, now time.Time) terms {
	next := terms{d.Required, d.Rate, d.Horizon, now}
	if next.required == 0 && s.Waiting() > 0 {
		next.required = s.Created + s.Creating + d.Create
	}
	if next.required == 0 && t.stand(now) {
		return t
	}
	return next
}

// stand tells whether they say something of now.
func (t terms) stand(now time.Time) bool {
	return t.required > 0 && now.Sub(t.at) < termsStand
}

// reading reads what is known of a function.
func (f *function) reading(now time.Time) reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := reading{
		key: f.fn.Key(), revision: f.revision, known: f.known, view: f.core.View(now), means: f.core.Means(),
		tally: f.book.tally, tallies: f.book.tallies.clone(), terms: f.book.terms, agents: f.book.reports.sum(),
		executions: f.book.executions.Clone(),
	}
	if f.book.spent != nil {
		spent := *f.book.spent
		r.phases = &spent
	}
	return r
}
