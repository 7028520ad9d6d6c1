package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// staleAfter is how long a call waits until it is stale, as in production.
const staleAfter = 100 * time.Millisecond

// decider is a function's algorithm: its own choice, or what the scheduler was told.
func (s *Scheduler) decider(fn *v1alpha1.Function) fpcs.Decider {
	if d, known := fpcs.ByName(string(fn.Spec.Decider)); known {
		return d
	}
	d, _ := fpcs.ByName(s.config.Decider) // which Config.Validate knows
	return d
}

// params are the deciders' constants.
func (s *Scheduler) params() fpcs.Params {
	return fpcs.Params{Tick: s.config.Tick, StaleAfter: staleAfter}
}

// snapshot makes the value that is decided on.
func (s *Scheduler) snapshot(f *function, fn *v1alpha1.Function, counts provisioner.Counts, view queue.View, stale int) fpcs.Snapshot {
	_, _, failing := s.deps.Instances.Failing(f.uid)
	snapshot := fpcs.Snapshot{
		Arrived:     view.Arrived,
		Departed:    view.Departed,
		Stale:       stale,
		OldestWait:  view.OldestWait,
		Created:     counts.Created,
		Busy:        min(view.Busy, counts.Created),
		Creating:    counts.Creating,
		Failing:     failing,
		Room:        s.room(f, fn),
		Concurrency: int(fn.Spec.Concurrency),
		MeanStart:   s.meanStart(f, fn),
	}
	now := s.deps.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	snapshot.MeanExecution = f.executions.Mean()
	snapshot.Memory = f.memory
	if !f.decided.IsZero() {
		snapshot.Elapsed = max(0, now.Sub(f.decided))
	}
	snapshot.Lost, f.lost = f.lost, 0
	return snapshot
}

// remember keeps what the next decision needs to know of this one.
func (f *function) remember(d fpcs.Decision, s fpcs.Snapshot, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory, f.terms, f.decided = d.Next, f.terms.after(d, s, now), now
	f.eagerFrom = time.Time{}
	if d.Again > 0 {
		f.eagerFrom = now.Add(d.Again)
	}
}

// eager tells whether a call that comes now is reason to decide before the next tick.
func (f *function) eager(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.eagerFrom.IsZero() && !now.Before(f.eagerFrom)
}
