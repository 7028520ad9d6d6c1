package queue

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// BindLate looks for an instance on a calm node, for a call that waits for a core of a busy one, as
// the instance cid says with a pull. It must follow Match: waiting tickets come first.
//
// A call whose ticket is not claimed goes to both, if necessary once another gateway has given a
// place back that it does not use. From then on the queue counts the second instance as the holder.
// Which of the two runs the call is for the gateway to say, which grants one claim; the other
// instance gives the ticket back. A ticket is handed to one more instance, and not to a third, until
// it waits here again. A call that came by a loan stays where it is, but the next ones come by
// tickets, and so to the instance that can run them first.
//
// unused is as for Recalls.
func (q *Queue) BindLate(cid invocation.CID, p Pull, now time.Time, lend bool, deliver Deliver, unused func(gateway string) int, visit func(Recall)) {
	// 1. Tickets for which places were recalled go to those that poll now.
	q.rebindRecalled(now, lend, deliver)
	switch {
	case !p.AwaitsCore:
	case p.Awaits == (invocation.ID{}):
		// 2. For a call by a loan, the instance gets its other places back.
		q.recallLender(cid, now, visit)
	default:
		// 3. A ticket goes to an instance that polls, or a place is recalled for it.
		if e := q.entries.held(cid, p.Awaits); e.mayRebind(now) && !q.rebind(e, now, lend, deliver) {
			q.recallCalm(e, now, unused, visit)
		}
	}
}

// mayRebind reports whether a ticket that an instance holds may go to another one, too. It need not
// once the node is calm again: the call will have a core at once. e may be nil.
func (e *entry) mayRebind(now time.Time) bool {
	return e != nil && e.holder != nil && e.holder.nodeBusy && !e.rebound && !e.cancelled && !e.expired(now)
}

// rebind hands a ticket that an instance holds to one on a calm node as well, and reports whether
// one polls.
func (q *Queue) rebind(e *entry, now time.Time, lend bool, deliver Deliver) bool {
	if len(q.instances.pollers) == 0 {
		return false
	}
	in := q.instances.pollerFor(e.ticket.Gateway, now)
	if in == nil || in.nodeBusy {
		return false
	}
	q.instances.unassign(e)
	q.instances.assign(e, in, lend, now)
	e.rebound = true
	deliver(in.cid, &e.ticket, e.lent)
	return true
}

// rebindRecalled rebinds the tickets for which recallCalm has recalled places, as far as instances
// of calm nodes poll now. The others go on waiting for their places.
func (q *Queue) rebindRecalled(now time.Time, lend bool, deliver Deliver) {
	if len(q.instances.pollers) == 0 || q.instances.pollers[0].nodeBusy {
		return
	}
	q.recalledFor = slices.DeleteFunc(q.recalledFor, func(id invocation.ID) bool {
		e := q.entries[id]
		return !e.mayRebind(now) || e.holder.awaits != id || q.rebind(e, now, lend, deliver)
	})
}

// recallCalm takes a place of an instance on a calm node back from another gateway, which does not
// use it, for a ticket that rebind could hand to nobody. No more places are owed than there are
// such tickets.
func (q *Queue) recallCalm(e *entry, now time.Time, unused func(gateway string) int, visit func(Recall)) {
	s := &q.instances
	unusedElsewhere := func(to gatewayCount) bool { return to.gateway != e.ticket.Gateway && unused(to.gateway) > 0 }
	if !s.totals.hasCalm() || now.Before(q.recallsPausedUntil) || !slices.ContainsFunc(s.lent, unusedElsewhere) {
		return
	}
	q.pauseRecalls(now)
	q.recalledFor = slices.DeleteFunc(q.recalledFor, func(id invocation.ID) bool { return !q.entries[id].mayRebind(now) })
	known, others := slices.Contains(q.recalledFor, e.ticket.ID), len(q.recalledFor)
	if known {
		others--
	}
	owed, onBusy := s.owedAtCalm(now)
	if owed > others {
		return // one of these places is for it, if it is known
	}
	best := s.unusedAtCalm(e.ticket.Gateway, onBusy, now, unused)
	if best.loan == nil {
		return
	}
	if !known {
		q.recalledFor = append(q.recalledFor, e.ticket.ID)
	}
	best.recall(1, best.term(now), now, visit)
}

// owedAtCalm is how many recalled places of calm nodes will poll soon, and how many places of
// busy nodes are lent to each gateway.
func (s *instances) owedAtCalm(now time.Time) (owed int, onBusy gatewayCounts) {
	for _, in := range s.joined {
		for i := range in.loans {
			l := &in.loans[i]
			if l.forgetOldRecalls(now); in.nodeBusy {
				onBusy.add(l.gateway, l.calls)
			} else {
				owed += l.owed() - l.running(now)
			}
		}
	}
	return owed, onBusy
}

// unusedAtCalm is the loan at an instance on a calm node that is recalled first for a ticket of this
// gateway: one that another gateway does not use. It is empty if there is none.
//
// A gateway calls the instances of calm nodes first, so of its unused places those on busy nodes are
// subtracted, unless the instance itself has said that it is idle.
func (s *instances) unusedAtCalm(gateway string, onBusy gatewayCounts, now time.Time, unused func(gateway string) int) (best recallable) {
	for _, in := range s.joined {
		if in.nodeBusy || in.coolingDown(gateway, now) {
			continue
		}
		for i := range in.loans {
			l := recallable{&in.loans[i], in}
			n := unused(l.gateway)
			if in.idleSince.IsZero() {
				n -= onBusy.of(l.gateway)
			}
			mayGo := l.gateway != gateway && l.calls > l.recalled && n > 0
			if mayGo && (best.loan == nil || compareIdle(l, best) < 0) {
				best = l
			}
		}
	}
	return best
}

// recallLender takes the places back that an instance of a busy node has lent, if the function has
// an instance on a calm one.
func (q *Queue) recallLender(cid invocation.CID, now time.Time, visit func(Recall)) {
	in := q.instances.joined[cid]
	if in == nil || !in.nodeBusy || !q.instances.totals.hasCalm() {
		return
	}
	for i := range in.loans {
		l := &in.loans[i]
		if l.forgetOldRecalls(now); l.calls > l.recalled {
			recallable{l, in}.recall(l.calls-l.recalled, 0, now, visit)
		}
	}
}
