package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// overloadedAfter is how long every ticket must have been late before the queue can
// count as overloaded. Shorter takes a burst for an overload.
const overloadedAfter = time.Second

// order is adaptive LIFO: the oldest ticket is handed out first or, while the queue is
// overloaded, the newest.
//
// A ticket is late when it is handed out after half of the time that its caller
// gives it: the other half is for the call itself, and for callers that are less
// patient than they say. A queue is overloaded once every ticket has been late for
// overloadedAfter, and the newest one will be late too at the pace of that time. So a cold
// start, however long, and a burst that the instances work off in time do not change the
// order. The overload ends when the oldest waiting ticket is not late.
type order struct {
	newestFirst bool
	// lateSince is when the first late ticket was handed out since a timely
	// one, or since the pace was last measured; zero if the last was timely.
	lateSince time.Time
	// handed is how many were since.
	handed int
}

// head is the ticket of a list that is handed out next, or nil.
func (t *order) head(l *ticketList) *entry {
	if t.newestFirst {
		return l.last
	}
	return l.first
}

// precedes reports whether a is handed out before b.
func (t *order) precedes(a, b *entry) bool { return a.before(b) != t.newestFirst }

// detectOverload sets the order after a ticket was handed out.
func (b *backlog) detectOverload(handed *invocation.Ticket, now time.Time) {
	t := &b.order
	switch {
	case t.newestFirst:
	case !late(handed, now):
		t.lateSince = time.Time{}
	case t.lateSince.IsZero():
		t.lateSince, t.handed = now, 0
	default:
		t.handed++
		took := now.Sub(t.lateSince)
		if took < overloadedAfter {
			return
		}
		if newest := b.newest(); newest != nil {
			t.newestFirst = overloaded(took, t.handed, b.waiting(), &newest.ticket, now)
		}
		t.lateSince, t.handed = now, 0
	}
}

// resetOrder returns to the order of arrival once the overload is over.
func (b *backlog) resetOrder(now time.Time) {
	if !b.order.newestFirst && b.order.lateSince.IsZero() {
		return
	}
	if oldest := b.oldest(); oldest == nil || b.order.newestFirst && !late(&oldest.ticket, now) {
		b.order = order{}
	}
}

// overloaded reports whether the newest ticket will be late when all waiting ones are handed
// out before it, at the pace of handed tickets in took.
func overloaded(took time.Duration, handed, waiting int, newest *invocation.Ticket, now time.Time) bool {
	rest := time.Duration(float64(took) * float64(waiting) / float64(handed))
	return late(newest, now.Add(rest))
}

// late reports whether a ticket that is handed out now has waited for more than half of its
// time.
func late(t *invocation.Ticket, now time.Time) bool {
	return now.Sub(t.Arrived) > t.Deadline.Sub(now)
}
