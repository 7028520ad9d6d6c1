package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/estimate"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// reading is what is told of a function beside its queue and its instances.
type reading struct {
	means  estimate.Means
	tally  tally
	terms  terms
	agents summary
	// stages is nil if no instance has started.
	stages *coldstart.Durations
}

// terms are what a decision was made of.
type terms struct {
	required int
	rate     float64
	horizon  time.Duration
}

// termsOf are those of a decision. As long as calls wait, a decider that does not ask
// how many instances are needed needs those that there are and those that it creates.
func termsOf(d fpcs.Decision, s fpcs.Snapshot) terms {
	t := terms{d.Required, d.Rate, d.Horizon}
	if t.required == 0 && s.Waiting() > 0 {
		t.required = s.Created + s.Creating + d.Create
	}
	return t
}

// reading reads what is known of a function.
func (f *function) reading() reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := reading{
		means: estimate.Means{Execution: f.executions.Mean(), Start: f.starts.Mean()},
		tally: f.tally, terms: f.terms, agents: f.reports.sum(),
	}
	if f.spent != nil {
		spent := *f.spent
		r.stages = &spent
	}
	return r
}
