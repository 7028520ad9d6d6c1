package queue

import (
	"iter"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// backlog is the tickets that wait, and whose turn it is.
type backlog struct {
	// main are those that are in no lane.
	main ticketList
	// lanes are by gateway: one has a lane while some instance avoids it.
	lanes map[string]*lane
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
	until time.Time // the last instance avoids the gateway until then
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
	if len(b.lanes) > 0 {
		if l, there := b.lanes[e.ticket.Gateway]; there {
			return &l.ticketList
		}
	}
	return &b.main
}

// part puts the tickets of a gateway into a lane, until no instance avoids it.
func (b *backlog) part(gateway string, until time.Time) {
	if l, there := b.lanes[gateway]; there {
		l.until = until
		return
	}
	if b.lanes == nil {
		b.lanes = make(map[string]*lane)
	}
	l := &lane{until: until}
	for e := b.main.first; e != nil; {
		next := e.next
		if e.ticket.Gateway == gateway {
			b.main.remove(e)
			l.insert(e)
		}
		e = next
	}
	b.lanes[gateway] = l
}

// merge ends the lanes of gateways that no instance avoids any more.
func (b *backlog) merge(now time.Time) {
	if len(b.lanes) == 0 {
		return
	}
	for gateway, l := range b.lanes {
		if !l.until.After(now) {
			delete(b.lanes, gateway)
			b.main.absorb(&l.ticketList)
		}
	}
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

// heads are the tickets whose turn it is, one of each list that has any.
func (b *backlog) heads() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for l := range b.lists() {
			if head := b.turn.head(l); head != nil && !yield(head) {
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
func (q *Queue) EachWaiting(see func(invoke.Ticket)) {
	for l := range q.backlog.lists() {
		for e := l.first; e != nil; e = e.next {
			see(e.ticket)
		}
	}
}
