package schedule

import "time"

// Window is a recurring time in which the function keeps at least Min instances.
type Window struct {
	Start Start
	// Zone is whose clocks show Start.
	Zone *time.Location
	// Duration is how long it lasts. It may be longer than the time between two
	// starts; then the window is open all the time.
	Duration time.Duration
	Min      int
}

// recheckAfter is when to ask again about a start that is more than five years away.
const recheckAfter = 365 * 24 * time.Hour

// Floor is the highest minimum of the windows that are open now, and until when it is at least
// that: later than now, and zero without windows.
func Floor(windows []Window, now time.Time) (least int, until time.Time) {
	for _, w := range windows {
		open, change := w.stateAt(now)
		if open {
			least = max(least, w.Min)
		}
		if until.IsZero() || change.Before(until) {
			until = change
		}
	}
	return least, until
}

// stateAt tells whether the window is open, and until when that is so at least.
func (w Window) stateAt(now time.Time) (open bool, until time.Time) {
	// Only starts within the last Duration can have kept it open.
	first := w.Start.nextStart(now.Add(-w.Duration), w.Zone)
	switch {
	case first.IsZero():
		return false, now.Add(recheckAfter)
	case first.After(now):
		return false, first
	}
	until = first.Add(w.Duration)
	// Where windows overlap, the next one takes over.
	if next := w.Start.nextStart(now, w.Zone); !next.IsZero() && !next.After(until) {
		until = next.Add(w.Duration)
	}
	return true, until
}
