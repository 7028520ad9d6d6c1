package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// PauseThreshold is how long a scheduler may not run before that counts as a pause: as
	// long as its peers wait until its standby takes over.
	PauseThreshold = 3 * ownership.HeartbeatInterval
	// PauseHold is for how long the scheduler then launches nothing. By its end the scheduler
	// has read who owns its slots, and redirected instances are back if it is still the owner.
	PauseHold = HelloTime
)

// PauseDetector notices that the scheduler's process or its machine was stopped for a while.
// What the scheduler sees right after that is old, or caused by its own silence, and no reason
// to launch anything.
type PauseDetector struct {
	// lastRun is when the scheduler last ticked, audited or ran a function, and heldUntil when
	// it may launch again.
	lastRun, heldUntil time.Time
}

// Ran records that the scheduler runs. If that ends a pause and begins a hold, it returns the
// length of the pause; otherwise 0. Two holds are at least PauseHold apart, so that a machine
// that is always short of CPU still launches instances.
func (p *PauseDetector) Ran(now time.Time) (stood time.Duration) {
	before := p.lastRun
	p.lastRun = now
	stood = now.Sub(before)
	if before.IsZero() || stood < PauseThreshold || now.Sub(p.heldUntil) < PauseHold {
		return 0
	}
	p.heldUntil = now.Add(PauseHold)
	return stood
}

// Holding reports whether the scheduler must not launch.
func (p *PauseDetector) Holding(now time.Time) bool { return now.Before(p.heldUntil) }
