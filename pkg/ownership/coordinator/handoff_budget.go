package coordinator

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// handoffInterval is the time between gifts, of idleHandoffs slots without work and
// busyHandoffs of those with, at most. A member that comes has its share of
// 1024 slots within half a minute, and no scheduler loses more of its
// calls' places in a second than it can offer again unnoticed.
const (
	handoffInterval = time.Second
	idleHandoffs    = 32
	busyHandoffs    = 5
)

// handoffBudget bounds how many slots are handed off in a time.
type handoffBudget struct {
	// refillAt is when there is a new one; before that idle and busy more may be given.
	refillAt   time.Time
	idle, busy int
}

// refill refills the budget when it is time.
func (a *handoffBudget) refill(now time.Time) {
	if !now.Before(a.refillAt) {
		*a = handoffBudget{now.Add(handoffInterval), idleHandoffs, busyHandoffs}
	}
}

// spend counts slots that are handed off.
func (a *handoffBudget) spend(ops []Op, busy func(ownership.Slot) bool) {
	for _, op := range ops {
		if busy(op.Key.Slot) {
			a.busy--
		} else {
			a.idle--
		}
	}
}
