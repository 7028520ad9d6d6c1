package floor

import (
	"time"

	"github.com/windlass-dev/windlass/internal/schedule"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// Floor is what a function keeps at a moment, beyond its spec's minimum.
type Floor struct {
	// Scheduled is the minimum that an open window of its schedule sets, and Awaited
	// the minimum because a call is expected soon.
	Scheduled, Awaited int
	// Planned says that idle times decide on the last instance: it stays if Kept,
	// otherwise all may leave.
	Planned, Kept bool
	// Change is when the Floor will differ if the function stays as busy or idle as it
	// is; zero for never.
	Change time.Time
}

// Min is the minimum of a function whose spec has the minimum spec.
func (f Floor) Min(spec int) int { return max(spec, f.Scheduled, f.Awaited) }

// Leave adapts p, the policy of a function without a Floor, for an instance that has been idle
// for that long. The policy's Min must be Min's result.
func (f Floor) Leave(p queue.LeavePolicy, idle time.Duration, now time.Time) queue.LeavePolicy {
	switch {
	case f.Planned && f.Kept:
		p.KeepLast = idle + f.Change.Sub(now)
	case f.Planned:
		p.IdleTimeout, p.KeepLast = 0, 0
	}
	return p
}

// ReleasesIdle reports whether idle instances must leave at once. On their own they ask only
// when their idle timeout ends.
func (f Floor) ReleasesIdle() bool { return f.Planned && !f.Kept }

// Policy computes the Floor of a function with a schedule or with learning of idle times. A
// function with neither has the nil Policy.
type Policy struct {
	windows []schedule.Window
	// scheduled is the minimum of the windows between these times of the calendar.
	scheduled   int
	from, until time.Time

	// learns says that idle times are counted, and patterned that they show a pattern, keep.
	learns, patterned bool
	keepLast          time.Duration
	idle              Histogram
	keep              Windows
}

// New makes the Policy of a function with these windows. Its last instance is kept for
// keepLast unless idle times show a pattern. The new Policy keeps the idle times of before,
// which may be nil.
func New(windows []schedule.Window, learns bool, keepLast time.Duration, before *Policy) *Policy {
	if len(windows) == 0 && !learns {
		return nil
	}
	p := &Policy{windows: windows, learns: learns, keepLast: keepLast}
	if before != nil && learns {
		p.idle = before.idle
		p.keep, p.patterned = p.idle.Windows(keepLast)
	}
	return p
}

// CalledAfter counts an idle time that a call ended.
func (p *Policy) CalledAfter(idle time.Duration) {
	if p == nil || !p.learns {
		return
	}
	p.idle.Add(idle)
	p.keep, p.patterned = p.idle.Windows(p.keepLast)
}

// Patterned reports whether idle times decide on the last instance.
func (p *Policy) Patterned() bool { return p != nil && p.patterned }

// At is the Floor now. The function has had no calls since idleSince, which is zero if it
// has some now or never had any. An instance takes start to start.
func (p *Policy) At(now, idleSince time.Time, start time.Duration) Floor {
	if p == nil {
		return Floor{}
	}
	calendar := now.Round(0) // its clock may be set back
	if len(p.windows) > 0 && (calendar.Before(p.from) || !calendar.Before(p.until)) {
		p.from = calendar
		p.scheduled, p.until = schedule.Floor(p.windows, now)
	}
	f := Floor{Scheduled: p.scheduled, Change: p.until}
	if !p.patterned || idleSince.IsZero() {
		return f
	}
	plan := p.keep.Plan(idleSince, now, start)
	f.Planned, f.Kept, f.Awaited = true, plan.Keep, plan.Floor
	if f.Change.IsZero() || !plan.Change.IsZero() && plan.Change.Before(f.Change) {
		f.Change = plan.Change
	}
	return f
}
