package v1alpha1

import (
	"cmp"
	"time"
)

// BackoffAfter is how long an instance is idle, at most, before it closes connections
// that it does not use and gives memory back.
const BackoffAfter = 10 * time.Second

// PerSecond is how many calls are taken in a second in the long run; 0 without a bound.
func (r *Rate) PerSecond() float64 {
	if r.Requests == 0 {
		return 0
	}
	period := cmp.Or(r.Period.Duration, DefaultPeriod)
	return float64(r.Requests) / period.Seconds()
}

// Idle is how long an instance is idle before it backs off, and how much longer before
// it leaves: idleTimeout in all.
func (s *ScaleDown) Idle() (backoff, rest time.Duration) {
	backoff = min(BackoffAfter, s.IdleTimeout.Duration/2)
	return backoff, s.IdleTimeout.Duration - backoff
}
