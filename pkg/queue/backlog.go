package queue

import (
	"iter"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// backlog is the tickets that wait, and whose turn it is.
type backlog struct {
	// main are those that are in no lane.
	main ticketList
	// lanes are of gateways: one has a lane while some instance avoids it.
	lanes []*lane
	turn  turn
	// arrived counts all tickets that ever waited, and departed those that do not
	// any more.
	arrived, departed uint64
}

// lane holds the tickets of a gateway that some instance avoids, so that they are
// in nobody's way. A queue of which no instance avoids anything has no lanes, and
// pays nothing for them.
type lane struct {
	ticketList
	gateway string
	until   time.Time // the last instance avoids the gateway until then
}

func (b *backlog) waiting() int { return int(b.arrived - b.departed) }

// insert adds a ticket that has just arrived.
func (b *backlog) insert(e *entry) {
	b.list(e).insert(e)
	b.arrived++
}

// putBack adds a ticket that was handed out.
func (b *backlog) putBack(e *entry) {
	b.list(e).insert(e)
	b.departed--
}

func (b *backlog) remove(e *entry) {
	b.list(e).remove(e)
	b.departed++
}

// list is where a ticket waits, or would.
func (b *backlog) list(e *entry) *ticketList {
	if l := b.lane(e.ticket.Gateway); l != nil {
		return &l.ticketList
	}
	return &b.main
}

// lane is that of a gateway, or nil. A handout looks at the heads of all lanes anyway, so
// that an index would save nothing.
func (b *backlog) lane(gateway string) *lane {
	for _, l := range b.lanes {
		if l.gateway == gateway {
			return l
		}
	}
	return nil
}

// part puts the tickets of a gateway into a lane, until no instance avoids it.
func (b *backlog) part(gateway string, until time.Time) {
	if l := b.lane(gateway); l != nil {
		l.until = until
		return
	}
	l := &lane{gateway: gateway, until: until}
	for e := b.main.first; e != nil; {
		next := e.next
		if e.ticket.Gateway == gateway {
			b.main.remove(e)
			l.insert(e)
		}
		e = next
	}
	b.lanes = append(b.lanes, l)
}

// merge ends the lanes of gateways that no instance avoids any more.
func (b *backlog) merge(now time.Time) {
	if len(b.lanes) == 0 {
		return
	}
	b.lanes = slices.DeleteFunc(b.lanes, func(l *lane) bool {
		over := !l.until.After(now)
		if over {
			b.main.absorb(&l.ticketList)
		}
		return over
	})
}

// lists are those that tickets wait in.
func (b *backlog) lists() iter.Seq[*ticketList] {
	return func(yield func(*ticketList) bool) {
		if !yield(&b.main) || len(b.lanes) == 0 {
			return
		}
		for _, l := range b.lanes {
			if !yield(&l.ticketList) {
				return
			}
		}
	}
}

// overdue is the oldest ticket of a list that is past its deadline, or nil.
func (b *backlog) overdue(now time.Time) *entry {
	for l := range b.lists() {
		if l.first != nil && l.first.overdue(now) {
			return l.first
		}
	}
	return nil
}

// oldest is the ticket that arrived first, or nil.
func (b *backlog) oldest() (oldest *entry) {
	for l := range b.lists() {
		if l.first != nil && (oldest == nil || l.first.before(oldest)) {
			oldest = l.first
		}
	}
	return oldest
}

// newest is the ticket that arrived last, or nil.
func (b *backlog) newest() (newest *entry) {
	for l := range b.lists() {
		if l.last != nil && (newest == nil || newest.before(l.last)) {
			newest = l.last
		}
	}
	return newest
}

// overdue tells whether nobody waits for the call any more.
func (e *entry) overdue(now time.Time) bool { return !e.ticket.Deadline.After(now) }

// EachWaiting calls see with every ticket that waits, in the order of arrival of each
// lane.
func (q *Queue) EachWaiting(see func(invocation.Ticket)) {
	for l := range q.backlog.lists() {
		for e := l.first; e != nil; e = e.next {
			see(e.ticket)
		}
	}
}
