package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Match hands waiting tickets to asking instances until no ticket is left that one
// of those that ask may be handed. It calls deliver for each ticket handed out. It
// is the one place where tickets meet pulls.
//
// Tickets past their deadline are forgotten if they come up meanwhile, or if they
// are then the oldest that wait, of an avoided gateway or of the others. Match
// returns how many it forgot.
func (q *Queue) Match(now time.Time, deliver func(invocation.CID, *invocation.Ticket)) (expired int) {
	// 1. Tickets of gateways that no instance avoids any more wait among the others.
	q.backlog.merge(now)
	// 2. Return to the order of arrival once there is hope.
	q.backlog.calmDown(now)
	for {
		// 3. Forget the oldest tickets as long as they are past their deadline.
		for e := q.backlog.overdue(now); e != nil; e = q.backlog.overdue(now) {
			q.drop(e)
			expired++
		}
		// 4. Whose turn is it, and who gets it?
		e, in := q.pair(now)
		if e == nil {
			break
		}
		// 5. It need not be the oldest ticket.
		if e.overdue(now) {
			q.drop(e)
			expired++
			continue
		}
		// 6. Hand it out.
		q.backlog.remove(e)
		q.instances.hand(e, in, now)
		// 7. Judge by its wait whether the order of arrival is hopeless.
		q.backlog.judge(&e.ticket, now)
		deliver(in.cid, &e.ticket)
	}
	// 8. As 2, for the next ticket that comes.
	q.backlog.calmDown(now)
	return expired
}

// pair is the ticket whose turn it is and the instance that gets it, or nothing.
// Whether a ticket can be handed out depends on its gateway alone, so only the heads of
// the lists need to be looked at.
func (q *Queue) pair(now time.Time) (best *entry, taker *instance) {
	if len(q.instances.asking) == 0 {
		return nil, nil
	}
	if len(q.backlog.lanes) == 0 { // as nearly always: nobody avoids anything
		return q.backlog.turn.head(&q.backlog.main), q.instances.asking[0]
	}
	for l := range q.backlog.lists() {
		e := q.backlog.turn.head(l)
		if e == nil || best != nil && !q.backlog.turn.first(e, best) {
			continue
		}
		if in := q.instances.takerOf(e.ticket.Gateway, now); in != nil {
			best, taker = e, in
		}
	}
	return best, taker
}
