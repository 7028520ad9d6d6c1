package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// overloadedAfter is how long every ticket must have been past half before the queue can
// count as overloaded. Shorter takes a burst for an overload.
const overloadedAfter = time.Second

// order is adaptive LIFO: the oldest ticket is handed out first or, while the queue is
// overloaded, the newest.
//
// A ticket is past half when it has waited for half of the time that its caller
// gives it: the other half is for the call itself, and for callers that are less
// patient than they say. A queue is overloaded once every ticket has been handed out past half for
// overloadedAfter, and the newest one will be past half too at the pace of that time. So a cold
// start, however long, and a burst that the instances work off in time do not change the
// order. The overload ends when the oldest waiting ticket is not past half.
type order struct {
	newestFirst bool
	// pastHalfSince is when the first ticket past half was handed out since a timely
	// one, or since the pace was last measured; zero if the last was timely.
	pastHalfSince time.Time
	// handedOut is how many were since.
	handedOut int
}

// head is the ticket of a list that is handed out next, or nil.
func (o *order) head(l *ticketList) *entry {
	if o.newestFirst {
		return l.last
	}
	return l.first
}

// precedes reports whether a is handed out before b.
func (o *order) precedes(a, b *entry) bool { return a.before(b) != o.newestFirst }

// detectOverload sets the order after a ticket was handed out.
func (b *backlog) detectOverload(handed *invocation.Ticket, now time.Time) {
	o := &b.order
	switch {
	case o.newestFirst:
	case !pastHalf(handed, now):
		o.pastHalfSince = time.Time{}
	case o.pastHalfSince.IsZero():
		o.pastHalfSince, o.handedOut = now, 0
	default:
		o.handedOut++
		took := now.Sub(o.pastHalfSince)
		if took < overloadedAfter {
			return
		}
		if newest := b.newest(); newest != nil {
			o.newestFirst = overloaded(took, o.handedOut, b.waiting(), &newest.ticket, now)
		}
		o.pastHalfSince, o.handedOut = now, 0
	}
}

// resetOrder returns to the order of arrival once the overload is over.
func (b *backlog) resetOrder(now time.Time) {
	if !b.order.newestFirst && b.order.pastHalfSince.IsZero() {
		return
	}
	if oldest := b.oldest(); oldest == nil || b.order.newestFirst && !pastHalf(&oldest.ticket, now) {
		b.order = order{}
	}
}

// overloaded reports whether the newest ticket will be past half when all waiting ones are handed
// out before it, at the pace of handed tickets in took.
func overloaded(took time.Duration, handed, waiting int, newest *invocation.Ticket, now time.Time) bool {
	rest := time.Duration(float64(took) * float64(waiting) / float64(handed))
	return pastHalf(newest, now.Add(rest))
}

// pastHalf reports whether a ticket that is handed out now has waited for more than half of its
// time.
func pastHalf(t *invocation.Ticket, now time.Time) bool {
	return now.Sub(t.Arrived) > t.Deadline.Sub(now)
}
