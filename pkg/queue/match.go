package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Deliver hands a ticket to an instance. lent says that the instance keeps the place for the ticket's
// gateway.
type Deliver func(to invocation.CID, t *invocation.Ticket, lent bool)

// Match hands waiting tickets to polling instances until none of them may be handed any
// of the tickets that are left. It calls deliver for each ticket handed out. lend says that
// instances keep the places for the tickets' gateways: all but those on busy nodes, if the function has
// an instance on a calm one. It is the one place where tickets meet pulls.
//
// A ticket past its deadline expires if it is next to be handed out, or if it is the
// oldest of its list. Match returns how many expired.
func (q *Queue) Match(now time.Time, lend bool, deliver Deliver) (expired int) {
	// 1. Tickets of gateways whose cool-downs have ended wait among the others again.
	q.backlog.mergeBack(now)
	// 2. Return to the order of arrival once the overload is over.
	q.backlog.resetOrder(now)
	for {
		// 3. Drop the oldest tickets as long as they are past their deadline.
		for e := q.backlog.oldestExpired(now); e != nil; e = q.backlog.oldestExpired(now) {
			q.removeWaiting(e)
			expired++
		}
		// 4. Pick the next ticket and the instance that gets it.
		e, in := pair(&q.backlog, &q.instances, now)
		if e == nil {
			break
		}
		// 5. It need not be the oldest ticket.
		if e.expired(now) {
			q.removeWaiting(e)
			expired++
			continue
		}
		// 6. Hand it out.
		q.backlog.remove(e)
		q.instances.assign(e, in, lend, now)
		// 7. Its wait tells whether the queue is overloaded.
		q.backlog.detectOverload(&e.ticket, now)
		deliver(in.cid, &e.ticket, e.lent)
	}
	// 8. As 2, for the next ticket that comes.
	q.backlog.resetOrder(now)
	return expired
}

// pair is the next ticket and the instance that gets it, or nothing. Whether a ticket can
// be handed out depends on its gateway alone, so only the heads of the lists matter.
func pair(b *backlog, s *instances, now time.Time) (best *entry, poller *instance) {
	if len(s.pollers) == 0 {
		return nil, nil
	}
	if len(b.perGateway) == 0 { // as nearly always: no gateway has a cool-down
		return b.order.head(&b.main), s.pollers[0]
	}
	for l := range b.lists() {
		e := b.order.head(l)
		if e == nil || best != nil && !b.order.precedes(e, best) {
			continue
		}
		if in := s.pollerFor(e.ticket.Gateway, now); in != nil {
			best, poller = e, in
		}
	}
	return best, poller
}
