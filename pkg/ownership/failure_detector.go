package ownership

import "time"

const (
	// HeartbeatInterval is how often a scheduler gets a heartbeat, and silentAfter how
	// long it may leave them unanswered: three intervals.
	HeartbeatInterval = 500 * time.Millisecond
	silentAfter       = 3 * HeartbeatInterval
	// steadyFor is how long one that was silent must answer before it counts
	// as there again: a link that comes and goes must not move slots to and fro.
	steadyFor = 2 * HeartbeatInterval
)

// FailureDetector decides from its heartbeats whether a scheduler is silent. It is a value
// and depends on nothing else. A scheduler that never answered is not silent before
// silentAfter.
type FailureDetector struct {
	// heard is when it last answered, and steady since when it has answered
	// every time; zero while it does not.
	heard, steady time.Time
	// advanced is when Advance was last called.
	advanced time.Time
	silent   bool
}

// NewFailureDetector is that of a scheduler that has just become known.
func NewFailureDetector(now time.Time) FailureDetector {
	return FailureDetector{heard: now, advanced: now}
}

// Silent reports whether the standby should act for the scheduler.
func (p FailureDetector) Silent() bool { return p.silent }

// ReconnectDue reports whether the scheduler has left heartbeats unanswered for so long
// that another connection is worth a try.
func (p FailureDetector) ReconnectDue(now time.Time) bool {
	return p.silent && now.Sub(p.heard) >= silentAfter
}

// Answered notes an answer to a heartbeat. A scheduler that starts or stops answers
// that it does not serve, and is silent at once.
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

// Refused notes that the scheduler's machine refuses connections: missed heartbeats
// need not be waited for.
func (p FailureDetector) Refused() FailureDetector {
	p.silent, p.steady = true, time.Time{}
	return p
}

// Advance notes that time has passed. It must be called every HeartbeatInterval or sooner: if
// it was not, it was the caller that stood still, and nothing is held against the
// scheduler.
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
