package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// bound is what late binding does.
type bound struct {
	out     []handed
	recalls []Recall
}

// heldBy is one of the tickets that an instance holds; the zero ID if it holds none.
func (w *model) heldBy(cid invocation.CID, n int) invocation.ID {
	var held []invocation.ID
	for _, t := range w.tickets {
		if t.holder == cid {
			held = append(held, t.ID)
		}
	}
	if len(held) == 0 {
		return invocation.ID{}
	}
	return held[n%len(held)]
}

// bindLate follows a pull.
func (w *model) bindLate(cid invocation.CID, p Pull, now time.Time, lend bool, idle map[string]int) (b bound) {
	polls := func(in modelInstance) bool { return in.credits > 0 && !in.busy }
	if slices.ContainsFunc(w.instances, polls) {
		for _, id := range slices.Clone(w.recalledFor) {
			over := !w.mayRebind(id, now) || w.instances[w.instance(w.tickets[w.ticket(id)].holder)].ticket != id
			if over || w.rebind(id, now, lend, &b) {
				w.recalledFor = slices.DeleteFunc(w.recalledFor, func(other invocation.ID) bool { return other == id })
			}
		}
	}
	i := w.ticket(p.Awaits)
	switch {
	case !p.AwaitsCore:
	case p.Awaits == invocation.ID{}:
		w.recallLender(cid, now, &b)
	case i >= 0 && cid == w.tickets[i].holder && w.mayRebind(p.Awaits, now) && !w.rebind(p.Awaits, now, lend, &b):
		w.recallCalm(w.tickets[i], now, idle, &b)
	}
	return b
}

// mayRebind tells whether a ticket may go to a second instance.
func (w *model) mayRebind(id invocation.ID, now time.Time) bool {
	i := w.ticket(id)
	if i < 0 {
		return false
	}
	t := w.tickets[i]
	return t.holder != "" && w.instances[w.instance(t.holder)].busy && !t.rebound && !t.cancelled && t.Deadline.After(now)
}

// rebind hands a ticket to the first instance that takes it, if its node is calm.
func (w *model) rebind(id invocation.ID, now time.Time, lend bool, b *bound) bool {
	i := w.ticket(id)
	to := w.pollerFor(w.tickets[i].Gateway, now)
	if to < 0 || w.instances[to].busy {
		return false
	}
	b.out = append(b.out, w.assign(i, to, now, lend))
	w.tickets[i].rebound = true
	return true
}

// recallLender recalls all places that an instance of a busy node has lent.
func (w *model) recallLender(cid invocation.CID, now time.Time, b *bound) {
	i := w.instance(cid)
	if i < 0 || !w.instances[i].busy || !w.hasCalm() {
		return
	}
	in := &w.instances[i]
	for _, gateway := range []string{"A", "B", "C"} {
		for range in.loans[gateway] - len(in.recalled[gateway]) {
			in.recall(gateway, 0, now, &b.recalls)
		}
		w.markAsked(gateway, now)
	}
}

// recallCalm recalls a place of a calm node that another gateway does not use, if no place that comes
// back is for the ticket.
func (w *model) recallCalm(t modelTicket, now time.Time, idle map[string]int, b *bound) {
	lent, onBusy, comes := map[string]int{}, map[string]int{}, 0
	for _, in := range w.instances {
		for _, gateway := range []string{"A", "B", "C"} {
			lent[gateway] += in.loans[gateway]
			if in.busy {
				onBusy[gateway] += in.loans[gateway]
				continue
			}
			comes += len(in.recalled[gateway])
			for _, recalled := range in.returning[gateway] {
				if now.Sub(recalled) < 100*time.Millisecond {
					comes++
				}
			}
		}
	}
	unused := func(gateway string) bool { return gateway != t.Gateway && lent[gateway] > 0 && idle[gateway] > 0 }
	if !w.hasCalm() || !slices.ContainsFunc([]string{"A", "B", "C"}, unused) {
		return
	}
	w.recalledFor = slices.DeleteFunc(w.recalledFor, func(id invocation.ID) bool { return !w.mayRebind(id, now) })
	known := slices.Contains(w.recalledFor, t.ID)
	if others := slices.DeleteFunc(slices.Clone(w.recalledFor), func(id invocation.ID) bool { return id == t.ID }); comes > len(others) {
		return
	}
	best, of := w.calmPlace(t.Gateway, onBusy, now, idle)
	if best == nil {
		return
	}
	if !known {
		w.recalledFor = append(w.recalledFor, t.ID)
	}
	best.recall(of, best.term(of, now), now, &b.recalls)
	w.markAsked(of, now)
}

// calmPlace is the instance that gives a place back for a ticket of this gateway, and whose place;
// nil if there is none.
func (w *model) calmPlace(gateway string, onBusy map[string]int, now time.Time, idle map[string]int) (best *modelInstance, of string) {
	for i := range w.instances {
		in := &w.instances[i]
		if in.busy || in.coolDowns[gateway].After(now) {
			continue
		}
		for _, other := range []string{"A", "B", "C"} {
			unused := idle[other]
			if in.idle.IsZero() { // its gateway calls it before those on busy nodes
				unused -= onBusy[other]
			}
			if other == gateway || unused <= 0 || in.loans[other] <= len(in.recalled[other]) {
				continue
			}
			if best == nil || idleFirst(in, other, best, of) < 0 {
				best, of = in, other
			}
		}
	}
	return best, of
}

// idleFirst compares the places that two instances have lent.
func idleFirst(a *modelInstance, of string, b *modelInstance, bOf string) int {
	if a.idle.IsZero() != b.idle.IsZero() {
		if b.idle.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(a.asked[of].Compare(b.asked[bOf]), cmp.Compare(b.cid, a.cid))
}
