package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// hopelessAfter is how long every ticket must have been late before the queue can
// be hopeless. Shorter takes a burst for an overload.
const hopelessAfter = time.Second

// turn says whose turn it is: the oldest ticket's or, while the queue is hopeless,
// the newest one's.
//
// A ticket is late when it is handed out after half of the time that its caller
// gives it: the other half is for the call itself, and for callers that are less
// patient than they say. A queue becomes hopeless when for hopelessAfter every
// ticket was late, and at the pace of that time the newest one will be as well. So
// a cold start, however long, and a burst that the instances will have dealt with
// in time leave the order alone. It ends when the oldest ticket that waits is not
// late.
type turn struct {
	newestFirst bool
	// lateSince is when the first late ticket was handed out since a timely
	// one, or since the pace was judged last; zero if the last was timely.
	lateSince time.Time
	// handed is how many were since.
	handed int
}

// head is the ticket of a list whose turn it is, or nil.
func (t *turn) head(l *ticketList) *entry {
	if t.newestFirst {
		return l.last
	}
	return l.first
}

// first tells whether it is one ticket's turn before another's.
func (t *turn) first(a, b *entry) bool { return a.before(b) != t.newestFirst }

// judge takes note of a ticket that was just handed out.
func (b *backlog) judge(handed *invocation.Ticket, now time.Time) {
	t := &b.turn
	switch {
	case t.newestFirst:
	case !late(handed, now):
		t.lateSince = time.Time{}
	case t.lateSince.IsZero():
		t.lateSince, t.handed = now, 0
	default:
		t.handed++
		took := now.Sub(t.lateSince)
		if took < hopelessAfter {
			return
		}
		if newest := b.newest(); newest != nil {
			t.newestFirst = hopeless(took, t.handed, b.waiting(), &newest.ticket, now)
		}
		t.lateSince, t.handed = now, 0
	}
}

// calmDown returns to the order of arrival once there is hope.
func (b *backlog) calmDown(now time.Time) {
	if !b.turn.newestFirst && b.turn.lateSince.IsZero() {
		return
	}
	if oldest := b.oldest(); oldest == nil || b.turn.newestFirst && !late(&oldest.ticket, now) {
		b.turn = turn{}
	}
}

// hopeless tells whether the newest ticket will be late when all that wait are
// handed out before it, at the pace of so many in so much time.
func hopeless(took time.Duration, handed, waiting int, newest *invocation.Ticket, now time.Time) bool {
	rest := time.Duration(float64(took) * float64(waiting) / float64(handed))
	return late(newest, now.Add(rest))
}

// late tells whether a ticket that is handed out now has waited for more than half
// of the time that it had.
func late(t *invocation.Ticket, now time.Time) bool {
	return now.Sub(t.Arrived) > t.Deadline.Sub(now)
}
