package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// newFloorPolicy makes the policy of a function. It keeps the idle times of the previous
// policy.
func newFloorPolicy(s Spec, before *floor.Policy) *floor.Policy {
	return floor.New(s.Windows, s.Learns, s.KeepLast, before)
}

// floor is the number of instances that the function keeps now without calls.
func (f *Function) floor(now time.Time, kindStart time.Duration) floor.Floor {
	return f.floorPolicy.At(now, f.idleSince, max(f.config.Tick, f.estimates.meanStart(kindStart, f.spec.StartupTimeout)))
}

// limits are the bounds on the number of instances. Max wins over everything else.
func (s *Spec) limits(kept floor.Floor) autoscaler.Limits {
	l := autoscaler.Limits{Min: kept.Min(s.Min), Max: s.Max}
	l.Proof = s.Proving && max(kept.Scheduled, kept.Awaited) < l.Min
	if l.Max > 0 {
		l.Min = min(l.Min, l.Max)
	}
	return l
}

// leavePolicy says when an instance that has been idle for that long may leave.
func (s *Spec) leavePolicy(kept floor.Floor, idle time.Duration, now time.Time) queue.LeavePolicy {
	return kept.Leave(queue.LeavePolicy{
		Min:         s.limits(kept).Min,
		IdleTimeout: s.BackoffAfter + s.IdleTimeout,
		KeepLast:    s.KeepLast,
	}, idle, now)
}

// evictPolicy says which idle instances may be evicted to make room for other functions.
func (f *Function) evictPolicy(now time.Time, idleFor, kindStart time.Duration) queue.EvictPolicy {
	return queue.EvictPolicy{Min: f.spec.limits(f.floor(now, kindStart)).Min, IdleFor: idleFor}
}

// Demand is what Evictable depends on, beside time, the spec and the instances.
type Demand struct {
	waiting int
	// idleSince is zero if it does not matter.
	idleSince time.Time
}

// Demand is the present Demand.
func (f *Function) Demand() Demand {
	d := Demand{waiting: f.Waiting()}
	if f.floorPolicy.Patterned() {
		d.idleSince = f.idleSince
	}
	return d
}

// ChangesUsage reports whether a step may have changed what Evictable returns before its time.
// These events do so only by their effects, or if the Demand has changed.
func ChangesUsage(e Event, effects []Effect, before, after Demand) bool {
	switch e.(type) {
	case *Ticked, *Applied, *Reported, ActivityAudited, GatewaysAudited, Woken, Paused:
		_, terminates := AnswerOf[Terminate](effects)
		return terminates || before != after
	}
	return true
}

// Evictable returns the instances that may be evicted, the longest idle one first, and until
// when the answer holds without an event of the function; zero means without limit. No
// instance may be evicted while calls wait. An instance that has just become idle may be
// evictable before that time.
func (f *Function) Evictable(now time.Time, kindStart time.Duration) (idle []queue.IdleInstance, until time.Time) {
	if f.Waiting() > 0 {
		return nil, until
	}
	kept := f.floor(now, kindStart)
	until = kept.Change
	if kept.Planned && f.estimates.starts.Mean() == 0 {
		until = now // the plan depends on start times of other functions, which may change at any time
	}
	return f.queue.LongestIdle(now, f.evictPolicy(now, 0, kindStart)), until
}
