package floor

import (
	"time"

	"github.com/windlass-dev/windlass/internal/schedule"
	"github.com/windlass-dev/windlass/pkg/autoscaler/keepalive"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// Upkeep is what instances a function is to have at a moment whether it is called or
// not, its spec's least aside.
type Upkeep struct {
	// Scheduled is how many it has at least because of the time, and Awaited how many
	// because a call is near.
	Scheduled, Awaited int
	// Planned says that its idle times teach what becomes of its last instance:
	// it stays if Kept, or else all may leave.
	Planned, Kept bool
	// Change is when any of this will be otherwise, if the function stays as busy
	// or idle as it is; zero for never.
	Change time.Time
}

// Least is the least instances of a function whose spec has that least.
func (u Upkeep) Least(least int) int { return max(least, u.Scheduled, u.Awaited) }

// Leave is when an instance that has been idle for so long may leave, if it may by
// that policy without any upkeep. The policy's Min is to be that of Least.
func (u Upkeep) Leave(p queue.LeavePolicy, idle time.Duration, now time.Time) queue.LeavePolicy {
	switch {
	case u.Planned && u.Kept:
		p.KeepLast = idle + u.Change.Sub(now)
	case u.Planned:
		p.IdleTimeout, p.KeepLast = 0, 0
	}
	return p
}

// ReleasesIdle tells whether idle instances are to go at once: they would ask to
// leave only when their own times are over.
func (u Upkeep) ReleasesIdle() bool { return u.Planned && !u.Kept }

// Keeper works out the upkeep of a function that has a schedule, or whose idle times are
// learnt. One of which neither is true has no Keeper, nil.
type Keeper struct {
	windows []schedule.Window
	// scheduled is the least of the windows until then.
	scheduled int
	until     time.Time

	// learns says that idle times are learnt, and taught that they teach plan.
	learns, taught bool
	keepLast       time.Duration
	idle           keepalive.Learner
	plan           keepalive.Windows
}

// New makes the Keeper of a function with these windows, whose last instance is kept
// for keepLast where its idle times do not say more, with what one before, which may be
// nil, has learnt.
func New(windows []schedule.Window, learns bool, keepLast time.Duration, before *Keeper) *Keeper {
	if len(windows) == 0 && !learns {
		return nil
	}
	k := &Keeper{windows: windows, learns: learns, keepLast: keepLast}
	if before != nil && learns {
		k.idle = before.idle
		k.plan, k.taught = k.idle.Windows(keepLast)
	}
	return k
}

// CalledAfter learns from an idle time that ended with a call.
func (k *Keeper) CalledAfter(idle time.Duration) {
	if k == nil || !k.learns {
		return
	}
	k.idle.Idle(idle)
	k.plan, k.taught = k.idle.Windows(k.keepLast)
}

// Taught tells whether the idle times say what is to be kept.
func (k *Keeper) Taught() bool { return k != nil && k.taught }

// At is the upkeep now. The function has had no calls since idleSince; that is zero
// if it has some, or never had. An instance takes that long to start.
func (k *Keeper) At(now, idleSince time.Time, start time.Duration) Upkeep {
	if k == nil {
		return Upkeep{}
	}
	if len(k.windows) > 0 && !now.Before(k.until) {
		k.scheduled, k.until = schedule.Floor(k.windows, now)
	}
	u := Upkeep{Scheduled: k.scheduled, Change: k.until}
	if !k.taught || idleSince.IsZero() {
		return u
	}
	plan := k.plan.Plan(idleSince, now, start)
	u.Planned, u.Kept, u.Awaited = true, plan.Keep, plan.Floor
	if u.Change.IsZero() || !plan.Change.IsZero() && plan.Change.Before(u.Change) {
		u.Change = plan.Change
	}
	return u
}
