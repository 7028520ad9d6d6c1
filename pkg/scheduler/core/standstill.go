package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// StandstillAfter is how long a scheduler may not turn until it counts as one that
	// stood still: as long as its peers wait until one of them stands in.
	StandstillAfter = 3 * ownership.BeatEvery
	// StandstillHold is for how long it orders nothing then. By the end of it the
	// scheduler has heard who owns its slots now, and instances that turned to
	// another one have come back if it is still the owner.
	StandstillHold = HelloTime
)

// Standstill notices that a scheduler stood still: its process was stopped, or its
// machine was. What it sees then is old or the effect of its own silence, and no reason to
// order anything.
type Standstill struct {
	// turned is when the scheduler last ticked, audited or was kicked, and heldUntil
	// when it may order again.
	turned, heldUntil time.Time
}

// Turn notes that the scheduler turns, and returns for how long it had not if that begins
// a hold; else 0. Between two holds is as much time as one lasts: a machine that starves
// all the time must not be kept from ordering for good.
func (s *Standstill) Turn(now time.Time) (stood time.Duration) {
	before := s.turned
	s.turned = now
	stood = now.Sub(before)
	if before.IsZero() || stood < StandstillAfter || now.Sub(s.heldUntil) < StandstillHold {
		return 0
	}
	s.heldUntil = now.Add(StandstillHold)
	return stood
}

// Holds tells whether nothing is to be ordered.
func (s *Standstill) Holds(now time.Time) bool { return now.Before(s.heldUntil) }
