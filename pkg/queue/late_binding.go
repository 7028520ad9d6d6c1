package queue

import (
	"slices"
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
	if !e.mayRebind(now) || len(q.instances.pollers) == 0 {
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

// mayRebind reports whether a ticket that an instance holds may go to another one, too. e may be nil.
func (e *entry) mayRebind(now time.Time) bool {
	return e != nil && e.holder != nil && !e.rebound && !e.cancelled && !e.expired(now)
}

// RecallCalm takes a place of an instance on a calm node back from another gateway, which does not
// use it, for a ticket that Rebind could hand to nobody. RebindRecalled follows when it polls.
//
// idle is as for Recalls. A gateway calls the instances of calm nodes first, so of its idle places
// those on busy nodes are subtracted, unless the instance itself has said that it is idle. No more
// places are expected than there are such tickets.
func RecallCalm(q *Queue, cid invocation.CID, id invocation.ID, now time.Time, idle func(gateway string) int, visit func(Recall)) {
	e, s := q.entries.held(cid, id), &q.instances
	unused := func(to gatewayCount) bool { return to.gateway != e.ticket.Gateway && idle(to.gateway) > 0 }
	if !e.mayRebind(now) || !s.totals.hasCalm() || now.Before(q.recallsFrom) || !slices.ContainsFunc(s.lent, unused) {
		return
	}
	pauseRecalls(q, now)
	q.lateFor = slices.DeleteFunc(q.lateFor, func(other invocation.ID) bool { return !q.entries[other].mayRebind(now) })
	known, others := slices.Contains(q.lateFor, id), len(q.lateFor)
	if known {
		others--
	}
	expected, onBusy := s.expectedAtCalm(now)
	if expected > others {
		return // one of these places is for it, if it is known
	}
	var best recallable
	for _, in := range s.joined {
		for i := range in.loans {
			l := recallable{&in.loans[i], in}
			left := idle(l.gateway)
			if in.idleSince.IsZero() {
				left -= onBusy.of(l.gateway)
			}
			if !in.nodeBusy && !in.coolingDown(e.ticket.Gateway, now) && l.gateway != e.ticket.Gateway && l.calls > l.recalled && left > 0 &&
				(best.loan == nil || compareIdle(l, best) < 0) {
				best = l
			}
		}
	}
	if best.loan != nil {
		if !known {
			q.lateFor = append(q.lateFor, id)
		}
		best.recall(best.of, 1, best.term(now), now, visit)
	}
}

// expectedAtCalm is how many recalled places of calm nodes will poll soon, and how many places of
// busy nodes are lent to each gateway.
func (s *instances) expectedAtCalm(now time.Time) (expected int, onBusy gatewayCounts) {
	for _, in := range s.joined {
		for i := range in.loans {
			l := &in.loans[i]
			if l.expire(now); in.nodeBusy {
				onBusy.add(l.gateway, l.calls)
			} else {
				expected += l.expected() - l.late(now)
			}
		}
	}
	return expected, onBusy
}

// RebindRecalled is Rebind for the tickets for which RecallCalm has recalled places, as far as
// instances of calm nodes poll now.
func RebindRecalled(q *Queue, now time.Time, lend bool, deliver Deliver) {
	for len(q.lateFor) > 0 && len(q.instances.pollers) > 0 && !q.instances.pollers[0].nodeBusy {
		id := q.lateFor[0]
		q.lateFor = q.lateFor[1:]
		if e := q.entries[id]; e != nil && e.holder != nil && e.holder.awaits == id {
			Rebind(q, e.holder.cid, id, now, lend, deliver)
		}
	}
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
