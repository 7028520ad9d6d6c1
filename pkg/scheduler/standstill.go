package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

const (
	// standstillAfter is how long Run may not turn until its scheduler counts as
	// one that stood still: as long as its peers wait until one of them stands in.
	standstillAfter = 3 * ownership.BeatEvery
	// standstillHold is for how long it orders nothing then. By the end of it the
	// scheduler has heard who owns its slots now, and instances that turned to
	// another one have come back if it is still the owner.
	standstillHold = core.HelloTime
)

// standstill notices that the process stood still: it was stopped, or its machine
// was. What it sees then is old or the effect of its own silence, and no reason to
// order anything. Only Run's goroutine uses it.
type standstill struct {
	// turned is when Run last ticked, audited or was kicked, and heldUntil when it
	// may order again.
	turned, heldUntil time.Time
}

// turn notes that Run turns, and returns for how long it had not if that begins a
// hold; else 0. Between two holds is as much time as one lasts: a machine that starves
// all the time must not be kept from ordering for good.
func (p *standstill) turn(now time.Time) (stood time.Duration) {
	before := p.turned
	p.turned = now
	stood = now.Sub(before)
	if before.IsZero() || stood < standstillAfter || now.Sub(p.heldUntil) < standstillHold {
		return 0
	}
	p.heldUntil = now.Add(standstillHold)
	return stood
}

// holds tells whether nothing is to be ordered.
func (p *standstill) holds(now time.Time) bool { return now.Before(p.heldUntil) }

// overlook forgets instances that were lost while orders are held: most of them come
// back. Calls that wait for those that do not are seen when the hold ends.
func (s *Scheduler) overlook(active []*function) {
	for _, f := range active {
		s.step(f, core.Paused{})
	}
}

// noteTurn notes that Run turns. It comes before anything that may order.
func (s *Scheduler) noteTurn(now time.Time) {
	if stood := s.stood.turn(now); stood > 0 {
		s.deps.Log.Warn("the scheduler stood still, and orders nothing until it knows what became of its instances",
			"stood", stood, "hold", standstillHold)
	}
}
