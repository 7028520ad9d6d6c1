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
func (p FailureDetector) Silent() bool { return p.silent }

// ReconnectDue reports whether the scheduler has left heartbeats unanswered for long enough to
// try another connection.
func (p FailureDetector) ReconnectDue(now time.Time) bool {
	return p.silent && now.Sub(p.heard) >= silentAfter
}

// Answered records an answer to a heartbeat. A scheduler that starts or stops answers that it
// does not serve, and is silent at once.
func (p FailureDetector) Answered(now time.Time, serving bool) FailureDetector {
	p.heard = now
	switch {
	case !serving:
		p.silent, p.steady = true, time.Time{}
	case p.steady.IsZero():
		p.steady = now
	}
	return p.recover(now)
}

// Refused records that the scheduler's machine refused a connection: the scheduler is silent
// at once, without missed heartbeats.
func (p FailureDetector) Refused() FailureDetector {
	p.silent, p.steady = true, time.Time{}
	return p
}

// Advance records that time has passed. The caller must call it every HeartbeatInterval or
// sooner. After a longer gap, the caller itself was paused, and the gap does not count against
// the scheduler.
func (p FailureDetector) Advance(now time.Time) FailureDetector {
	if now.Sub(p.advanced) >= silentAfter-HeartbeatInterval && !p.silent {
		p.heard = now
	}
	p.advanced = now
	if now.Sub(p.heard) >= silentAfter {
		p.silent, p.steady = true, time.Time{}
	}
	return p.recover(now)
}

func (p FailureDetector) recover(now time.Time) FailureDetector {
	if !p.steady.IsZero() && now.Sub(p.steady) >= steadyFor {
		p.silent = false
	}
	return p
}
