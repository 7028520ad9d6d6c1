package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// newKeeper makes the keeper of a function, with what one before has learnt.
func newKeeper(s Spec, before *floor.Keeper) *floor.Keeper {
	return floor.New(s.Windows, s.Learns, s.KeepLast, before)
}

// Upkeep is what instances the function is to have now whether it is called or not.
func (f *Function) Upkeep(now time.Time, kindStart time.Duration) floor.Upkeep {
	return f.keeper.At(now, f.quietSince, max(f.config.Tick, f.learnt.meanStart(kindStart, f.spec.StartupTimeout)))
}

// limits are the bounds on the number of instances. Max wins over everything else.
func (s *Spec) limits(kept floor.Upkeep) autoscaler.Limits {
	l := autoscaler.Limits{Min: kept.Least(s.Min), Max: s.Max}
	l.Proof = s.Proving && max(kept.Scheduled, kept.Awaited) < l.Min
	if l.Max > 0 {
		l.Min = min(l.Min, l.Max)
	}
	return l
}

// leavePolicy is when an instance that has been idle for so long may leave.
func (s *Spec) leavePolicy(kept floor.Upkeep, idle time.Duration, now time.Time) queue.LeavePolicy {
	return kept.Leave(queue.LeavePolicy{
		Min:         s.limits(kept).Min,
		IdleTimeout: s.BackoffAfter + s.IdleTimeout,
		KeepLast:    s.KeepLast,
	}, idle, now)
}

// EvictPolicy is when an idle instance may be made to leave for others.
func (f *Function) EvictPolicy(now time.Time, idleFor, kindStart time.Duration) queue.EvictPolicy {
	return queue.EvictPolicy{Min: f.spec.limits(f.Upkeep(now, kindStart)).Min, IdleFor: idleFor}
}

// Evictable are the instances that may be evicted, the longest idle one first, and until
// when that stands if nothing happens; zero for ever. None is evicted while calls wait. One
// that has just become idle may go later.
func (f *Function) Evictable(now time.Time, kindStart time.Duration) (idle []queue.IdleInstance, until time.Time) {
	if f.queue.Waiting() > 0 {
		return nil, until
	}
	kept := f.Upkeep(now, kindStart)
	until = kept.Change
	if kept.Planned && f.learnt.starts.Mean() == 0 {
		until = now // it goes by the starts of others, which are not followed
	}
	return f.queue.LongestIdle(now, f.EvictPolicy(now, 0, kindStart)), until
}

// LongestIdle are the instances that may be made to leave; see queue.Queue.LongestIdle.
func (f *Function) LongestIdle(now time.Time, policy queue.EvictPolicy) []queue.IdleInstance {
	return f.queue.LongestIdle(now, policy)
}
