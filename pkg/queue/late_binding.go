package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Rebind hands a ticket whose holder waits for a core of its node to another instance as well: one
// on a calm node that polls, if there is one. From then on the queue counts that instance as the
// holder. Which of the two runs the call is for the gateway to say, which grants one claim; the
// other instance gives the ticket back. A ticket is handed to one more instance, and not to a
// third, until it waits here again.
//
// It must follow Match: waiting tickets come first.
func Rebind(q *Queue, cid invocation.CID, id invocation.ID, now time.Time, lend bool, deliver Deliver) {
	e := q.entries.held(cid, id)
	if e == nil || e.rebound || e.cancelled || e.expired(now) || len(q.instances.pollers) == 0 {
		return
	}
	in := q.instances.pollerFor(e.ticket.Gateway, now)
	if in == nil || in.nodeBusy {
		return
	}
	q.instances.unassign(e)
	q.instances.assign(e, in, lend, now)
	e.rebound = true
	deliver(in.cid, &e.ticket, e.lent)
}

// RecallLate takes the places back that an instance has lent, if the function has an instance on a
// calm node. It is for an instance that was handed a call by a loan, which waits for a core:
// further calls come by tickets, and so to the instance that can run them first.
func RecallLate(q *Queue, cid invocation.CID, now time.Time, visit func(Recall)) {
	in := q.instances.joined[cid]
	if in == nil || !in.nodeBusy || !q.instances.totals.hasCalm() {
		return
	}
	for i := range in.loans {
		l := &in.loans[i]
		if l.expire(now); l.calls > l.recalled {
			l.recall(in, l.calls-l.recalled, 0, now, visit)
		}
	}
}
