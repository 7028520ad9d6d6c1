package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// PauseThreshold is how long a scheduler may not turn until it counts as one that
	// stood still: as long as its peers wait until one of them stands in.
	PauseThreshold = 3 * ownership.HeartbeatInterval
	// PauseHold is for how long it orders nothing then. By the end of it the
	// scheduler has heard who owns its slots now, and instances that turned to
	// another one have come back if it is still the owner.
	PauseHold = HelloTime
)

// PauseDetector notices that a scheduler stood still: its process was stopped, or its
// machine was. What it sees then is old or the effect of its own silence, and no reason to
// order anything.
type PauseDetector struct {
	// lastRun is when the scheduler last ticked, audited or was kicked, and heldUntil
	// when it may order again.
	lastRun, heldUntil time.Time
}

// Ran notes that the scheduler turns, and returns for how long it had not if that begins
// a hold; else 0. Between two holds is as much time as one lasts: a machine that starves
// all the time must not be kept from ordering for good.
func (s *PauseDetector) Ran(now time.Time) (stood time.Duration) {
	before := s.lastRun
	s.lastRun = now
	stood = now.Sub(before)
	if before.IsZero() || stood < PauseThreshold || now.Sub(s.heldUntil) < PauseHold {
		return 0
	}
	s.heldUntil = now.Add(PauseHold)
	return stood
}

// Holding tells whether nothing is to be ordered.
func (s *PauseDetector) Holding(now time.Time) bool { return now.Before(s.heldUntil) }
