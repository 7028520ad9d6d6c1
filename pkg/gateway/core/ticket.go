package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// ticket is the state of an invocation's tickets.
type ticket struct {
	token    invocation.Token
	deadline time.Time // when the invocation stops waiting
	offered  time.Time // when it was sent last; zero if no queue has it
	offers   int
}

// renew offers an invocation under a new token: claims with the earlier one are refused.
func (t *ticket) renew(token invocation.Token, now time.Time) Decision {
	t.token = token
	return t.offer(now)
}

func (t *ticket) offer(now time.Time) Decision {
	t.offered = now
	t.offers++
	return Decision{Offer: true}
}

// due reports whether it is to be sent again, or its deadline has come, which is not the first
// one if the invocation was queued again.
func (t *ticket) due(now time.Time, moved bool) bool {
	return moved || now.Sub(t.offered) > ReofferAfter || now.After(t.deadline)
}

// Ticket is what the last ticket of an invocation says: how long it had waited and would
// wait, the token, and the number that a claim by it would have. Again says that it is
// not the first ticket.
type Ticket struct {
	Token             invocation.Token
	Waited, Remaining time.Duration
	Attempt           int
	Again             bool
}

// Ticket is that of an invocation that waits; false for any other.
func (v *Invocation) Ticket() (Ticket, bool) {
	t := &v.ticket
	return Ticket{
		Token: t.token, Waited: t.offered.Sub(v.spec.Admitted), Remaining: t.deadline.Sub(t.offered),
		Attempt: v.attempt + 1, Again: t.offers > 1,
	}, v.phase == Queued
}
