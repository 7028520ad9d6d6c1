package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// order is the order in which a queue must hand tickets out, by what it was told: the newest first if for
// overloadedAfter each was handed out past half of its time, and the newest that waits would be, too, at the
// pace of that time; and the oldest first again once the oldest that waits is not past half.
type order struct {
	newestFirst bool
	// since is when the first ticket that counts was handed out past half of its time, zero if the last one
	// was handed out before that, and handedOut how many were since.
	since     time.Time
	handedOut int
	// unsure says that it cannot be known from outside how the queue counts: nothing waited for a moment, and
	// the queue need not have looked; or something that is too late waits, and the queue need not have dropped it.
	unsure bool
}

// overloadedAfter is for how long each ticket must have been handed out past half of its time.
const overloadedAfter = time.Second

// handed notes that a ticket was handed out. Those that wait then are the others.
func (o *order) handed(t invocation.Ticket, others waiting, now time.Time) {
	switch {
	case o.newestFirst:
	case !pastHalf(t.Arrived, t.Deadline, now):
		o.since = time.Time{}
	case o.since.IsZero():
		o.since, o.handedOut = now, 0
	default:
		o.handedOut++
		took := now.Sub(o.since)
		if took < overloadedAfter {
			return
		}
		o.unsure = o.unsure || others.late
		if n := others.newest; n != nil && !o.unsure {
			rest := time.Duration(float64(took) * float64(others.n) / float64(o.handedOut))
			o.newestFirst = pastHalf(n.arrived, n.deadline, now.Add(rest))
		}
		o.since, o.handedOut = now, 0
	}
}

// looked notes that the queue has looked at what waits.
func (o *order) looked(w waiting, now time.Time) {
	if w.oldest == nil || o.newestFirst && !pastHalf(w.oldest.arrived, w.oldest.deadline, now) {
		*o = order{}
	}
}

// is compares the order with the queue's own after an event. The queue has looked at what waits in any case if it
// has handed out a ticket.
func (o *order) is(newestFirst bool, w waiting, handedOut bool, now time.Time) Rule {
	if handedOut || o.newestFirst && !newestFirst {
		o.looked(w, now)
	}
	wrong := newestFirst != o.newestFirst && !o.unsure
	o.unsure = !newestFirst && !o.since.IsZero() && (o.unsure || w.oldest == nil)
	o.newestFirst = newestFirst
	if wrong {
		return RuleNewestIfOverloaded
	}
	return ""
}

// pastHalf tells whether a ticket has waited for more than half of its time.
func pastHalf(arrived, deadline, now time.Time) bool { return now.Sub(arrived) > deadline.Sub(now) }

// waiting is what is to be known of the tickets that wait and are not too late.
type waiting struct {
	n              int
	oldest, newest *kept
	// late says that one that is too late came after the oldest one.
	late bool
}

func (k *tickets) waiting(now time.Time) waiting {
	var w waiting
	for _, e := range k.kept {
		if e.holder != "" || !e.deadline.After(now) {
			continue
		}
		w.n++
		if w.oldest == nil || e.before(w.oldest) {
			w.oldest = e
		}
		if w.newest == nil || w.newest.before(e) {
			w.newest = e
		}
	}
	for _, e := range k.kept {
		w.late = w.late || e.holder == "" && !e.deadline.After(now) && w.oldest != nil && w.oldest.before(e)
	}
	return w
}

func (e *kept) before(other *kept) bool {
	if !e.arrived.Equal(other.arrived) {
		return e.arrived.Before(other.arrived)
	}
	return e.deadline.Before(other.deadline)
}
