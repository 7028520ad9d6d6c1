package coordinator

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// handoffInterval is the time between two handoffs of at most idleHandoffs slots without work
// and busyHandoffs with work. So a new member gets its share of 1024 slots within half a
// minute, and gateways can offer the waiting calls of the moved slots again unnoticed.
const (
	handoffInterval = time.Second
	idleHandoffs    = 32
	busyHandoffs    = 5
)

// handoffBudget bounds the rate of handoffs.
type handoffBudget struct {
	// refillAt is when the budget is refilled; until then idle and busy are left.
	refillAt   time.Time
	idle, busy int
}

// refill renews the budget if it is due.
func (h *handoffBudget) refill(now time.Time) {
	if !now.Before(h.refillAt) {
		*h = handoffBudget{now.Add(handoffInterval), idleHandoffs, busyHandoffs}
	}
}

// spend subtracts slots that are handed off.
func (h *handoffBudget) spend(ops []Op, busy func(ownership.Slot) bool) {
	for _, op := range ops {
		if busy(op.Key.Slot) {
			h.busy--
		} else {
			h.idle--
		}
	}
}
