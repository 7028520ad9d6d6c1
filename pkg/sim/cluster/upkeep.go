package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/upkeep"
)

// upkeep is the function's upkeep now.
func (s *scheduler) upkeep(f *function) upkeep.Upkeep {
	if f.keeper == nil {
		return upkeep.Upkeep{}
	}
	var since time.Time
	if f.quiet {
		since = instant(f.quietSince)
	}
	return f.keeper.At(instant(s.now), since, max(s.config.Scheduler.Tick, s.meanStart(f)))
}

// disturb is a call that comes to a function.
func (s *scheduler) disturb(f *function) {
	if f.quiet {
		f.quiet = false
		f.keeper.CalledAfter(s.now - f.quietSince)
	}
}

// noteQuiet notes when no call of a function is left.
func (s *scheduler) noteQuiet(f *function) {
	if f.keeper == nil || f.quiet || f.queue.Waiting()+f.queue.Out() > 0 {
		return
	}
	f.quiet, f.quietSince = true, s.now
	if f.keeper.Taught() {
		s.activate(f)
	}
}

// limits are the bounds on the number of instances. The most wins over the least.
func (f *function) limits(u upkeep.Upkeep) fpcs.Limits {
	l := f.class.Limits
	l.Min = u.Least(l.Min)
	if l.Max > 0 {
		l.Min = min(l.Min, l.Max)
	}
	return l
}

// leavePolicy is when an instance that has been idle for so long may leave.
func (s *scheduler) leavePolicy(f *function, idle time.Duration) queue.LeavePolicy {
	u := s.upkeep(f)
	return u.Leave(queue.LeavePolicy{
		Min:         f.limits(u).Min,
		IdleTimeout: f.class.BackoffAfter + f.class.IdleTimeout,
		KeepLast:    f.class.KeepLast,
	}, idle, instant(s.now))
}

// evictPolicy is when an idle instance may be made to leave.
func (s *scheduler) evictPolicy(f *function) queue.EvictPolicy {
	return queue.EvictPolicy{Min: f.limits(s.upkeep(f)).Min, IdleFor: s.config.Scheduler.EvictAfter}
}

// releaseIdle sends all idle instances of a function away of which none is kept.
func (s *scheduler) releaseIdle(c *considered) {
	f := c.function
	if !c.upkeep.ReleasesIdle() || f.created == 0 {
		return
	}
	policy := queue.EvictPolicy{Min: f.limits(c.upkeep).Min, IdleFor: 1}
	for _, idle := range f.queue.LongestIdle(instant(s.now), policy) {
		if f.queue.Evict(idle.CID, instant(s.now), policy) {
			f.queue.Leave(idle.CID, instant(s.now))
			f.result.Left++
			s.remove(f.instances[idle.CID])
		}
	}
}

// sleep lets ticks pass over a function until something happens, or its upkeep
// changes.
func (s *scheduler) sleep(c *considered) {
	if c.upkeep.Change.IsZero() {
		return
	}
	f, at := c.function, c.upkeep.Change.Sub(epoch)
	if f.wake != at {
		f.wake = at
		s.agenda.plan(at, (*functionWakes)(f))
	}
}

// functionWakes is when the upkeep of a function changes, unless it was planned
// otherwise since.
type functionWakes function

func (e *functionWakes) happen(w *world) {
	if f := (*function)(e); f.wake == w.now {
		w.scheduler.activate(f)
	}
}
