package queue

import (
	"container/heap"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// instances are the joined instances, the heap of those that poll for tickets, and their
// totals.
type instances struct {
	joined  map[invocation.CID]*instance
	pollers pollHeap
	totals  totals
	// lent are the places that instances which do not drain have lent to each gateway.
	lent gatewayCounts
	// requested counts the tickets that instances ever asked for.
	requested uint64
}

// instance is a joined instance. It is in the heap of pollers exactly while it has
// credits and is not draining.
type instance struct {
	cid      invocation.CID
	capacity int // credits + len(out) + lent <= capacity
	credits  int
	out      []*entry // in no order
	loans    []loan   // in order of the gateways' addresses
	lent     int      // the sum of their calls
	ready    bool     // has polled at least once, so that it is known to work
	draining bool
	// nodeBusy says that its node has more to do than cores, and awaitsCore that it has a call
	// that waits for one of them.
	nodeBusy, awaitsCore bool
	// awaits is the ticket of that call; zero if the call has begun or came by a loan.
	awaits invocation.ID
	index  int // in the heap, -1 if not there
	// idleSince is since when it has run nothing: since its credits reached its capacity or, if
	// it has loans, as its agent says. It is zero while it runs something, or may.
	idleSince time.Time
	// coolDowns are the gateways that it could not reach, and until when it gets none of their
	// tickets.
	coolDowns map[string]time.Time
}

// totals are the sums over all instances that are not draining. They are updated with
// each change, because they are read too often to be summed up each time.
type totals struct {
	instances int
	// ready instances have polled at least once, and busy ones hold a ticket.
	ready, busy int
	// awaiting instances have a call that waits for a core, and of the ready ones onBusy are on
	// busy nodes.
	awaiting, onBusy int
	// places is how many calls the ready ones run at a time, and out how many tickets they hold.
	places, out int
	// credits is how many tickets they poll for, and lent how many calls they take from
	// gateways directly.
	credits, lent int
}

// adjust adds an instance without credits and loans, with n = 1, or takes it away, with n = -1.
func (t *totals) adjust(in *instance, n int) {
	t.instances += n
	if in.ready {
		t.addReady(in, n)
	}
	t.out += n * len(in.out)
	if len(in.out) > 0 {
		t.busy += n
	}
	if in.awaitsCore {
		t.awaiting += n
	}
}

// addReady adds an instance that has polled to the ready ones, with n = 1, or takes it away.
func (t *totals) addReady(in *instance, n int) {
	t.ready += n
	t.places += n * in.capacity
	if in.nodeBusy {
		t.onBusy += n
	}
}

// hasCalm reports whether an instance is on a calm node.
func (t *totals) hasCalm() bool { return t.ready > t.onBusy }

// untracked is how many calls run that no ticket here and no loan accounts for: an earlier
// scheduler handed them out, or their places were recalled. A ready instance polls for every
// place in which it runs nothing and that it has not lent.
func (t *totals) untracked() int { return t.places - t.credits - t.lent - t.out }

// join adds an instance, and reports whether it is new.
func (s *instances) join(cid invocation.CID, capacity int) bool {
	if _, known := s.joined[cid]; known {
		return false
	}
	in := &instance{cid: cid, capacity: capacity, index: -1}
	if s.joined == nil {
		s.joined = make(map[invocation.CID]*instance)
	}
	s.joined[cid] = in
	s.totals.adjust(in, 1)
	return true
}

// removeInstance removes an instance that holds nothing.
func (s *instances) removeInstance(in *instance) {
	s.clearPlaces(in)
	if !in.draining {
		s.totals.adjust(in, -1)
	}
	delete(s.joined, in.cid)
}

// drain assigns nothing more to an instance, and reports whether that changed anything. Its
// agent takes its loans back.
func (s *instances) drain(in *instance) bool {
	if in.draining {
		return false
	}
	s.clearPlaces(in)
	s.totals.adjust(in, -1)
	in.draining = true
	return true
}

// pull applies what an instance asks for and what it has lent.
func (s *instances) pull(in *instance, p Pull, now time.Time) {
	if !in.ready {
		in.ready = true
		if !in.draining {
			s.totals.addReady(in, 1)
		}
	}
	if in.awaitsCore != p.AwaitsCore {
		s.setAwaiting(in, p.AwaitsCore)
	}
	in.setAwaits(p.Awaits, now)
	if in.nodeBusy != p.NodeBusy {
		s.setNodeBusy(in, p.NodeBusy)
	}
	s.setLoans(in, p.Loans, now)
	s.addCredits(in, p.Credits, now)
	in.updateIdle(p.Idle, now)
}

// setNodeBusy records whether the node of a ready instance is busy.
func (s *instances) setNodeBusy(in *instance, busy bool) {
	n := 1
	if in.nodeBusy = busy; !busy {
		n = -1
	}
	if !in.draining {
		s.totals.onBusy += n
	}
	if in.index >= 0 {
		heap.Fix(&s.pollers, in.index)
	}
}

func (s *instances) setAwaiting(in *instance, awaits bool) {
	n := 1
	if in.awaitsCore = awaits; !awaits {
		n = -1
	}
	if !in.draining {
		s.totals.awaiting += n
	}
}

// setAwaits records which ticket waits for a core. The claim of one that does not wait any more
// follows now.
func (in *instance) setAwaits(id invocation.ID, now time.Time) {
	if in.awaits == id {
		return
	}
	for _, e := range in.out {
		if e.ticket.ID == in.awaits {
			e.handedAt = now
		}
	}
	in.awaits = id
}

// addCredits lets an instance poll for credits more tickets, within its capacity.
func (s *instances) addCredits(in *instance, credits int, now time.Time) {
	credits = min(credits, in.capacity-in.credits-len(in.out)-in.lent)
	in.placesReturned(max(0, credits))
	if credits <= 0 || in.draining {
		return
	}
	in.credits += credits
	s.totals.credits += credits
	s.requested += uint64(credits)
	if in.index < 0 {
		heap.Push(&s.pollers, in)
	}
}

// updateIdle updates since when an instance has run nothing. idle is what its agent says: it
// alone knows of the calls that come by loans.
func (in *instance) updateIdle(idle time.Duration, now time.Time) {
	switch {
	case in.credits+in.lent < in.capacity, in.lent > 0 && idle <= 0:
		in.idleSince = time.Time{}
	case idle > 0:
		in.idleSince = now.Add(-idle)
	case in.idleSince.IsZero():
		in.idleSince = now
	}
}

// clearPlaces ends an instance's poll and its loans.
func (s *instances) clearPlaces(in *instance) {
	s.clearCredits(in)
	s.setLoans(in, nil, time.Time{})
	in.loans = slices.DeleteFunc(in.loans, func(l loan) bool { return l.tickets == 0 })
	for i := range in.loans {
		in.loans[i].returning = 0 // its place comes to another instance
	}
}

// clearCredits ends an instance's poll.
func (s *instances) clearCredits(in *instance) {
	s.totals.credits -= in.credits
	in.credits, in.idleSince = 0, time.Time{}
	if in.index >= 0 {
		heap.Remove(&s.pollers, in.index)
	}
}

// assign gives a ticket to a polling instance. lend says that the instance keeps the place for
// the ticket's gateway, unless its next calls should rather go to a calm node.
func (s *instances) assign(e *entry, in *instance, lend bool, now time.Time) {
	in.idleSince = time.Time{}
	in.credits--
	s.totals.credits--
	if in.credits == 0 {
		s.clearCredits(in)
	}
	if e.lent = lend && !(in.nodeBusy && s.totals.hasCalm()); e.lent {
		in.lend(e.ticket.Gateway, now)
	}
	e.holder, e.handedAt = in, now
	e.outIndex = len(in.out)
	in.out = append(in.out, e)
	s.totals.out++ // it polls, so it is not draining
	if len(in.out) == 1 {
		s.totals.busy++
	}
}

// unassign takes a ticket from its holder.
func (s *instances) unassign(e *entry) {
	in := e.holder
	if e.holder = nil; e.lent {
		in.loanTo(e.ticket.Gateway).tickets--
	}
	last := in.out[len(in.out)-1]
	in.out[e.outIndex], last.outIndex = last, e.outIndex
	in.out[len(in.out)-1] = nil
	in.out = in.out[:len(in.out)-1]
	if in.draining {
		return
	}
	s.totals.out--
	if len(in.out) == 0 {
		s.totals.busy--
	}
}

// pollerFor is the first polling instance that has no cool-down for a gateway, or nil.
// At least one instance must poll.
func (s *instances) pollerFor(gateway string, now time.Time) *instance {
	if first := s.pollers[0]; !first.coolingDown(gateway, now) {
		return first
	}
	var best *instance
	for _, in := range s.pollers {
		if (best == nil || in.rank().Before(best.rank())) && !in.coolingDown(gateway, now) {
			best = in
		}
	}
	return best
}

// coolDown hands an instance no ticket of a gateway until that time.
func (in *instance) coolDown(gateway string, until, now time.Time) {
	for other, until := range in.coolDowns {
		if !until.After(now) {
			delete(in.coolDowns, other)
		}
	}
	if in.coolDowns == nil {
		in.coolDowns = make(map[string]time.Time)
	}
	in.coolDowns[gateway] = until
}

func (in *instance) coolingDown(gateway string, now time.Time) bool {
	return len(in.coolDowns) > 0 && in.coolDowns[gateway].After(now)
}

func (in *instance) rank() invocation.Rank {
	return invocation.Rank{NodeBusy: in.nodeBusy, CID: in.cid}
}

// pollHeap is a heap of polling instances, the first in rank on top.
type pollHeap []*instance

func (h pollHeap) Len() int           { return len(h) }
func (h pollHeap) Less(i, j int) bool { return h[i].rank().Before(h[j].rank()) }

func (h pollHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for container/heap only.
func (h *pollHeap) Push(x any) {
	in := x.(*instance)
	in.index = len(*h)
	*h = append(*h, in)
}

// Pop is for container/heap only.
func (h *pollHeap) Pop() any {
	old := *h
	in := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	in.index = -1
	return in
}
