package queue

import (
	"iter"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// backlog has the waiting tickets, and the order in which they are handed out.
type backlog struct {
	// main has all tickets but those of the gateways that have their own queue.
	main ticketList
	// perGateway has a queue for each gateway that some instance has a cool-down for.
	perGateway []*gatewayQueue
	order      order
	// byGateway counts the waiting tickets of each gateway.
	byGateway gatewayCounts
	// arrived counts all tickets that ever waited, and departed those that no longer do.
	arrived, departed uint64
}

// gatewayQueue holds the tickets of a gateway that some instance has a cool-down for, so
// that they do not block those of other gateways. Without cool-downs there is none, and
// none costs anything.
type gatewayQueue struct {
	ticketList
	gateway string
	until   time.Time // when the last cool-down for the gateway ends
}

func (b *backlog) waiting() int { return int(b.arrived - b.departed) }

// insert adds a ticket that has just arrived.
func (b *backlog) insert(e *entry) {
	b.list(e).insert(e)
	b.byGateway.add(e.ticket.Gateway, 1)
	b.arrived++
}

// requeue adds a ticket that was handed out.
func (b *backlog) requeue(e *entry) {
	b.list(e).insert(e)
	b.byGateway.add(e.ticket.Gateway, 1)
	b.departed--
}

func (b *backlog) remove(e *entry) {
	b.list(e).unlink(e)
	b.byGateway.add(e.ticket.Gateway, -1)
	b.departed++
}

// correctAge moves an entry to its place in the order of arrival by a ticket that arrived earlier.
func (b *backlog) correctAge(e *entry, t invocation.Ticket) {
	waits := e.holder == nil
	if waits {
		b.list(e).unlink(e)
	}
	e.ticket.Arrived, e.ticket.Deadline = t.Arrived, t.Deadline
	if waits {
		b.list(e).insert(e)
	}
}

// list is the list that a ticket waits in, or would.
func (b *backlog) list(e *entry) *ticketList {
	if l := b.gatewayQueue(e.ticket.Gateway); l != nil {
		return &l.ticketList
	}
	return &b.main
}

// gatewayQueue is that of a gateway, or nil. Match looks at the heads of all of them anyway,
// so an index would save nothing.
func (b *backlog) gatewayQueue(gateway string) *gatewayQueue {
	for _, l := range b.perGateway {
		if l.gateway == gateway {
			return l
		}
	}
	return nil
}

// separate moves the tickets of a gateway into their own queue until that time.
func (b *backlog) separate(gateway string, until time.Time) {
	if l := b.gatewayQueue(gateway); l != nil {
		l.until = until
		return
	}
	l := &gatewayQueue{gateway: gateway, until: until}
	for e := b.main.first; e != nil; {
		next := e.next
		if e.ticket.Gateway == gateway {
			b.main.unlink(e)
			l.insert(e)
		}
		e = next
	}
	b.perGateway = append(b.perGateway, l)
}

// mergeBack returns the tickets of gateways whose cool-downs have ended to the main list.
func (b *backlog) mergeBack(now time.Time) {
	if len(b.perGateway) == 0 {
		return
	}
	b.perGateway = slices.DeleteFunc(b.perGateway, func(l *gatewayQueue) bool {
		over := !l.until.After(now)
		if over {
			b.main.absorb(&l.ticketList)
		}
		return over
	})
}

// lists are the main list and those of the gateways.
func (b *backlog) lists() iter.Seq[*ticketList] {
	return func(yield func(*ticketList) bool) {
		if !yield(&b.main) || len(b.perGateway) == 0 {
			return
		}
		for _, l := range b.perGateway {
			if !yield(&l.ticketList) {
				return
			}
		}
	}
}

// oldestExpired is the oldest ticket of a list that is past its deadline, or nil.
func (b *backlog) oldestExpired(now time.Time) *entry {
	for l := range b.lists() {
		if l.first != nil && l.first.expired(now) {
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

// expired reports whether the deadline of the call has passed.
func (e *entry) expired(now time.Time) bool { return !e.ticket.Deadline.After(now) }

// EachWaiting calls visit with every waiting ticket, in order of arrival within the main list
// and within each gateway's queue.
func (q *Queue) EachWaiting(visit func(invocation.Ticket)) {
	for l := range q.backlog.lists() {
		for e := l.first; e != nil; e = e.next {
			visit(e.ticket)
		}
	}
}
