package ownership

import "time"

const (
	// BeatEvery is how often a scheduler is asked whether it is there, and
	// silentAfter how long it may leave that unanswered: three beats.
	BeatEvery   = 500 * time.Millisecond
	silentAfter = 3 * BeatEvery
	// steadyFor is how long one that was silent must answer before it counts
	// as there again: a link that comes and goes moves nothing to and fro.
	steadyFor = 2 * BeatEvery
)

// Pulse is what the beats of one scheduler say of it. It is a value: what it says
// depends on nothing else. A scheduler of which nothing is known yet is not
// silent until it was for long enough.
type Pulse struct {
	// heard is when it last answered, and steady since when it has answered
	// every time; zero while it does not.
	heard, steady time.Time
	// looked is when the Pulse was last looked at.
	looked time.Time
	silent bool
}

// NewPulse is the Pulse of a scheduler that was just heard of.
func NewPulse(now time.Time) Pulse { return Pulse{heard: now, looked: now} }

// Silent tells whether others should stand in for the scheduler.
func (p Pulse) Silent() bool { return p.silent }

// Unheard tells whether the scheduler has left beats unanswered for so long that
// whoever asks may try another connection.
func (p Pulse) Unheard(now time.Time) bool { return p.silent && now.Sub(p.heard) >= silentAfter }

// Answer notes an answer to a beat. A scheduler that starts or stops answers
// that it does not serve, and is silent at once.
func (p Pulse) Answer(now time.Time, serving bool) Pulse {
	p.heard = now
	switch {
	case !serving:
		p.silent, p.steady = true, time.Time{}
	case p.steady.IsZero():
		p.steady = now
	}
	return p.recover(now)
}

// Refuse notes that the scheduler's machine says that nobody listens there: no
// need to wait for missed beats.
func (p Pulse) Refuse() Pulse {
	p.silent, p.steady = true, time.Time{}
	return p
}

// Look notes that time has passed. It must be called every BeatEvery or sooner: if
// it was not, it was the caller that stood still, and nothing is held against the
// scheduler.
func (p Pulse) Look(now time.Time) Pulse {
	if now.Sub(p.looked) >= silentAfter-BeatEvery && !p.silent {
		p.heard = now
	}
	p.looked = now
	if now.Sub(p.heard) >= silentAfter {
		p.silent, p.steady = true, time.Time{}
	}
	return p.recover(now)
}

func (p Pulse) recover(now time.Time) Pulse {
	if !p.steady.IsZero() && now.Sub(p.steady) >= steadyFor {
		p.silent = false
	}
	return p
}
