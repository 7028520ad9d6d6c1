package coordinator

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// giftEvery is the time between gifts, of idleGifts slots without work and
// busyGifts of those with, at most. A member that comes has its share of
// 1024 slots within half a minute, and no scheduler loses more of its
// calls' places in a second than it can offer again unnoticed.
const (
	giftEvery = time.Second
	idleGifts = 32
	busyGifts = 5
)

// allowance bounds how many slots are given away in a time.
type allowance struct {
	// renewed is when there is a new one; before that idle and busy more may be given.
	renewed    time.Time
	idle, busy int
}

// refill makes a new allowance when it is time.
func (a *allowance) refill(now time.Time) {
	if !now.Before(a.renewed) {
		*a = allowance{now.Add(giftEvery), idleGifts, busyGifts}
	}
}

// spend counts slots that are given away.
func (a *allowance) spend(ops []Op, works func(ownership.Slot) bool) {
	for _, op := range ops {
		if works(op.Key.Slot) {
			a.busy--
		} else {
			a.idle--
		}
	}
}
