package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/keepalive"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/schedule"
)

// upkeep is what instances a function is to have at a moment whether it is called or
// not, its spec's least aside.
type upkeep struct {
	// scheduled is how many it has at least because of the time of day, and awaited
	// how many because a call is near.
	scheduled, awaited int
	// planned says that its idle times teach what becomes of its last instance:
	// it stays if kept, or else all may leave.
	planned, kept bool
	// change is when any of this will be otherwise, if the function stays as busy
	// or idle as it is; zero for never.
	change time.Time
}

// upkeeper works out the upkeep of a function that has a schedule, or whose idle
// times are learnt. One that has neither has none, nil.
type upkeeper struct {
	windows []schedule.Window
	// scheduled is the least of the windows until then.
	scheduled int
	until     time.Time

	// learns says that idle times are learnt, and taught that they teach plan.
	learns, taught bool
	// keepLast is the spec's.
	keepLast time.Duration
	idle     keepalive.Learner
	plan     keepalive.Windows
}

// newUpkeeper makes one for a function, with what one before has learnt.
func newUpkeeper(fn *v1alpha1.Function, before *upkeeper) *upkeeper {
	windows := fn.Spec.Scaling.Windows()
	learns := fn.Spec.Scaling.KeepAlive == v1alpha1.KeepAliveHistogram
	if len(windows) == 0 && !learns {
		return nil
	}
	u := &upkeeper{windows: windows, learns: learns, keepLast: fn.Spec.Scaling.KeepLast.Duration}
	if before != nil && learns {
		u.idle, u.plan, u.taught = before.idle, before.plan, before.taught
	}
	return u
}

// calledAfter learns from an idle time that ended with a call.
func (u *upkeeper) calledAfter(idle time.Duration) {
	if u == nil || !u.learns {
		return
	}
	u.idle.Idle(idle)
	u.plan, u.taught = u.idle.Windows(u.keepLast)
}

// at is the upkeep now. The function has had no calls since idleSince; that is zero
// if it has some, or never had. An instance takes that long to start.
func (u *upkeeper) at(now, idleSince time.Time, start time.Duration) upkeep {
	if u == nil {
		return upkeep{}
	}
	if len(u.windows) > 0 && !now.Before(u.until) {
		u.scheduled, u.until = schedule.Floor(u.windows, now)
	}
	k := upkeep{scheduled: u.scheduled, change: u.until}
	if !u.taught || idleSince.IsZero() {
		return k
	}
	plan := u.plan.Plan(idleSince, now, start)
	k.planned, k.kept, k.awaited = true, plan.Keep, plan.Floor
	if k.change.IsZero() || !plan.Change.IsZero() && plan.Change.Before(k.change) {
		k.change = plan.Change
	}
	return k
}

// keep is the function's upkeep now. An instance takes that long to start.
func (f *function) keep(now time.Time, start time.Duration) upkeep {
	idleSince := f.broker.QuietSince()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.upkeep.at(now, idleSince, start)
}

// calledAfter learns that a call came after so long without any; 0 if there were
// some.
func (f *function) calledAfter(idle time.Duration) {
	if idle <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.upkeep.calledAfter(idle)
}

// beginsToIdle tells whether the function has no calls now and its idle times say
// what is to be kept from now on.
func (f *function) beginsToIdle() bool {
	f.mu.Lock()
	taught := f.upkeep != nil && f.upkeep.taught
	f.mu.Unlock()
	return taught && !f.broker.QuietSince().IsZero()
}

// upkeepNow is the upkeep of a function that a tick need not be looking at.
func (s *Scheduler) upkeepNow(f *function) upkeep {
	return f.keep(s.deps.Now(), max(s.config.Tick, s.meanStart(f, f.current())))
}

// limits are the bounds on the number of instances. The most wins over the least.
func limits(fn *v1alpha1.Function, kept upkeep) fpcs.Limits {
	l := fpcs.Limits{Min: max(int(fn.Spec.Scaling.Min), kept.scheduled, kept.awaited)}
	if most := fn.Spec.Scaling.Max; most != nil {
		l.Max = int(*most)
		l.Min = min(l.Min, l.Max)
	}
	return l
}

// leavePolicy is when an instance that has been idle for so long may leave.
func leavePolicy(fn *v1alpha1.Function, kept upkeep, idle time.Duration, now time.Time) queue.LeavePolicy {
	s := fn.Spec.Scaling
	p := queue.LeavePolicy{
		Min:         limits(fn, kept).Min,
		IdleTimeout: s.BackoffAfter.Duration + s.IdleTimeout.Duration,
		KeepLast:    s.KeepLast.Duration,
	}
	switch {
	case kept.planned && kept.kept:
		p.KeepLast = idle + kept.change.Sub(now)
	case kept.planned:
		p.IdleTimeout, p.KeepLast = 0, 0
	}
	return p
}

// evictPolicy is when an idle instance may be made to leave.
func evictPolicy(fn *v1alpha1.Function, kept upkeep, idleFor time.Duration) queue.EvictPolicy {
	return queue.EvictPolicy{Min: limits(fn, kept).Min, IdleFor: idleFor}
}

// releaseIdle retires the idle instances of a function of which none is kept: they
// would ask to leave only when their own times are over.
func (s *Scheduler) releaseIdle(c *considered) {
	if !c.upkeep.planned || c.upkeep.kept || c.counts.Created == 0 {
		return
	}
	policy := evictPolicy(c.fn, c.upkeep, 1)
	for _, idle := range c.function.broker.LongestIdle(policy) {
		if s.retire(idleInstance{c.function, idle.CID}, policy, "no call is near") {
			s.record(c.function, (*metrics).releasedOne)
			s.deps.Log.Info("released an idle instance", "function", c.fn.Key().String(), "cid", idle.CID,
				"idle", idle.Idle, "again", c.upkeep.change)
		}
	}
}
