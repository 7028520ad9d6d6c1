package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/upkeep"
)

// newKeeper makes the keeper of a function, with what one before has learnt.
func newKeeper(fn *v1alpha1.Function, before *upkeep.Keeper) *upkeep.Keeper {
	s := fn.Spec.Scaling
	return upkeep.New(s.Windows(), s.KeepAlive == v1alpha1.KeepAliveHistogram, s.KeepLast.Duration, fn.StartUntil(), before)
}

// keep is the function's upkeep now. An instance takes that long to start.
func (f *function) keep(now time.Time, start time.Duration) upkeep.Upkeep {
	idleSince := f.broker.QuietSince()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keeper.At(now, idleSince, start)
}

// calledAfter learns that a call came after so long without any; 0 if there were
// some.
func (f *function) calledAfter(idle time.Duration) {
	if idle <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keeper.CalledAfter(idle)
	f.unsure()
}

// beginsToIdle tells whether the function has no calls now and its idle times say
// what is to be kept from now on.
func (f *function) beginsToIdle() bool {
	f.mu.Lock()
	taught := f.keeper.Taught()
	f.mu.Unlock()
	return taught && !f.broker.QuietSince().IsZero()
}

// upkeepNow is the upkeep of a function that a tick need not be looking at.
func (s *Scheduler) upkeepNow(f *function) upkeep.Upkeep {
	return f.keep(s.deps.Now(), max(s.config.Tick, s.meanStart(f, f.current())))
}

// limits are the bounds on the number of instances. The most wins over the least.
func limits(fn *v1alpha1.Function, kept upkeep.Upkeep) fpcs.Limits {
	l := fpcs.Limits{Min: kept.Least(int(fn.Spec.Scaling.Min))}
	if most := fn.Spec.Scaling.Max; most != nil {
		l.Max = int(*most)
		l.Min = min(l.Min, l.Max)
	}
	return l
}

// leavePolicy is when an instance that has been idle for so long may leave.
func leavePolicy(fn *v1alpha1.Function, kept upkeep.Upkeep, idle time.Duration, now time.Time) queue.LeavePolicy {
	s := fn.Spec.Scaling
	return kept.Leave(queue.LeavePolicy{
		Min:         limits(fn, kept).Min,
		IdleTimeout: s.BackoffAfter.Duration + s.IdleTimeout.Duration,
		KeepLast:    s.KeepLast.Duration,
	}, idle, now)
}

// evictPolicy is when an idle instance may be made to leave.
func evictPolicy(fn *v1alpha1.Function, kept upkeep.Upkeep, idleFor time.Duration) queue.EvictPolicy {
	return queue.EvictPolicy{Min: limits(fn, kept).Min, IdleFor: idleFor}
}

// tooMany tells whether the function has more instances than it may: its most was
// lowered, or some came back that nobody could reach while others were ordered.
func (c *considered) tooMany() bool {
	most := limits(c.fn, c.upkeep).Max
	return most > 0 && c.counts.Created > most
}

// releaseIdle retires idle instances that are not to wait until their own times are
// over: those beyond the function's most, and all beyond its least when no call is near.
func (s *Scheduler) releaseIdle(c *considered) {
	policy, reason := evictPolicy(c.fn, c.upkeep, 1), "no call is near"
	switch {
	case c.counts.Created == 0:
		return
	case c.upkeep.ReleasesIdle():
	case c.tooMany():
		policy.Min, reason = limits(c.fn, c.upkeep).Max, "there are more than scaling.max"
	default:
		return
	}
	for _, idle := range c.function.broker.LongestIdle(policy) {
		if s.retire(c.function, idle.CID, policy, reason) {
			c.function.note(instanceReleased, 1)
			s.deps.Log.Info("released an idle instance", "function", c.fn.Key().String(), "cid", idle.CID,
				"reason", reason, "idle", idle.Idle, "again", c.upkeep.Change)
		}
	}
}
