package podagent

import "time"

// idleStep is what an idle agent does next.
type idleStep int

const (
	stepNone idleStep = iota
	stepQuiet
	stepAskToLeave
)

// idleness is how long an agent has waited and what it did about it. It is a
// value: what to do next depends on nothing else.
type idleness struct {
	// Since is when the last call ended; zero while one runs.
	Since time.Time
	// Quiet says that connections were closed already.
	Quiet bool
	// NotBefore is when the scheduler wants to be asked again; zero if it
	// was not asked yet.
	NotBefore time.Time
	// Asked says that an answer is due.
	Asked bool
}

// idleLimits are the waiting times of a function, and a factor of 1 to 1.1 by
// which its instances leave at different times.
type idleLimits struct {
	BackoffAfter, IdleTimeout time.Duration
	Jitter                    float64
}

// next is what to do now, and when to look again; zero for not at all.
func (i idleness) next(now time.Time, l idleLimits) (idleStep, time.Duration) {
	if i.Since.IsZero() || i.Asked {
		return stepNone, 0
	}
	idle := now.Sub(i.Since)
	leaveAfter := l.BackoffAfter + time.Duration(float64(l.IdleTimeout)*l.Jitter)
	leaveIn := max(leaveAfter-idle, i.NotBefore.Sub(now))
	switch {
	case !i.Quiet && idle >= l.BackoffAfter && leaveIn > 0:
		return stepQuiet, leaveIn
	case !i.Quiet && leaveIn > 0:
		return stepNone, l.BackoffAfter - idle
	case leaveIn > 0:
		return stepNone, leaveIn
	}
	return stepAskToLeave, 0
}
