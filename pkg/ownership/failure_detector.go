package ownership

import "time"

const (
	// HeartbeatInterval is how often a scheduler gets a heartbeat, and silentAfter how long it
	// may leave heartbeats unanswered: three of them.
	HeartbeatInterval = 500 * time.Millisecond
	silentAfter       = 3 * HeartbeatInterval
	// steadyFor is how long a silent scheduler must answer before it counts as alive again, so
	// that an unstable link does not move routes back and forth.
	steadyFor = 2 * HeartbeatInterval
)

// FailureDetector decides from the heartbeats of one scheduler whether that is silent. It is a
// value and reads no clock. A scheduler that has not answered yet is not silent until it had
// the time to answer.
type FailureDetector struct {
	// heard is when the scheduler last answered, and steady since when it has answered every
	// heartbeat; zero while it does not.
	heard, steady time.Time
	// advanced is when Advance was last called.
	advanced time.Time
	silent   bool
}

// NewFailureDetector returns the detector of a scheduler that has just become known.
func NewFailureDetector(now time.Time) FailureDetector {
	return FailureDetector{heard: now, advanced: now}
}

// Silent reports whether the scheduler's standbys should serve its slots.
func (f FailureDetector) Silent() bool { return f.silent }

// ReconnectDue reports whether the scheduler has left heartbeats unanswered for long enough to
// try another connection.
func (f FailureDetector) ReconnectDue(now time.Time) bool {
	return f.silent && now.Sub(f.heard) >= silentAfter
}

// Answered records an answer to a heartbeat. A scheduler that starts or stops answers that it
// does not serve, and is silent at once.
func (f FailureDetector) Answered(now time.Time, serving bool) FailureDetector {
	f.heard = now
	switch {
	case !serving:
		f.silent, f.steady = true, time.Time{}
	case f.steady.IsZero():
		f.steady = now
	case now.Sub(f.steady) >= steadyFor:
		f.silent = false
	}
	return f
}

// Refused records that the scheduler's machine refused a connection: the scheduler is silent
// at once, without missed heartbeats.
func (f FailureDetector) Refused() FailureDetector {
	f.silent, f.steady = true, time.Time{}
	return f
}

// Advance records that time has passed. The caller must call it every HeartbeatInterval or
// sooner. After a longer gap, the caller itself was paused, and the gap does not count against
// the scheduler.
func (f FailureDetector) Advance(now time.Time) FailureDetector {
	if now.Sub(f.advanced) >= silentAfter-HeartbeatInterval && !f.silent {
		f.heard = now
	}
	f.advanced = now
	if now.Sub(f.heard) >= silentAfter {
		f.silent, f.steady = true, time.Time{}
	}
	return f
}
