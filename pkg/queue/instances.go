package queue

import (
	"container/heap"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// instances are the joined instances, the heap of those that poll for tickets, and their
// totals.
type instances struct {
	joined  map[invocation.CID]*instance
	pollers pollHeap
	totals  totals
	// requested counts the tickets that instances ever asked for.
	requested uint64
}

// instance is a joined instance. It is in the heap of pollers exactly while it has
// credits and is not draining.
type instance struct {
	cid      invocation.CID
	capacity int // credits + len(out) <= capacity
	credits  int
	out      []*entry // in no order
	ready    bool     // has polled at least once, so that it is known to work
	draining bool
	index    int // in the heap, -1 if not there
	// idleSince is when its credits reached its capacity, which they do only while it runs
	// nothing; zero while they are below.
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
	// credits is how many tickets they poll for.
	credits int
}

// adjust adds an instance without credits, with n = 1, or takes it away, with n = -1.
func (c *totals) adjust(in *instance, n int) {
	c.instances += n
	if in.ready {
		c.ready += n
	}
	if len(in.out) > 0 {
		c.busy += n
	}
}

// join adds an instance, and reports whether it is new.
func (s *instances) join(cid invocation.CID, capacity int) bool {
	if _, known := s.joined[cid]; known {
		return false
	}
	in := &instance{cid: cid, capacity: capacity, index: -1}
	s.joined[cid] = in
	s.totals.adjust(in, 1)
	return true
}

// removeInstance removes an instance that holds nothing.
func (s *instances) removeInstance(in *instance) {
	s.clearCredits(in)
	if !in.draining {
		s.totals.adjust(in, -1)
	}
	delete(s.joined, in.cid)
}

// drain assigns nothing more to an instance, and reports whether that changed anything.
func (s *instances) drain(in *instance) bool {
	if in.draining {
		return false
	}
	s.clearCredits(in)
	s.totals.adjust(in, -1)
	in.draining = true
	return true
}

// addCredits lets an instance poll for credits more tickets, within its capacity.
func (s *instances) addCredits(in *instance, credits int, now time.Time) {
	if !in.ready {
		in.ready = true
		if !in.draining {
			s.totals.ready++
		}
	}
	credits = min(credits, in.capacity-in.credits-len(in.out))
	if credits <= 0 || in.draining {
		return
	}
	in.credits += credits
	s.totals.credits += credits
	s.requested += uint64(credits)
	if in.credits == in.capacity {
		in.idleSince = now
	}
	if in.index < 0 {
		heap.Push(&s.pollers, in)
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

// assign gives a ticket to a polling instance.
func (s *instances) assign(e *entry, in *instance, now time.Time) {
	in.idleSince = time.Time{}
	in.credits--
	s.totals.credits--
	if in.credits == 0 {
		s.clearCredits(in)
	}
	e.holder, e.handed = in, now
	e.place = len(in.out)
	in.out = append(in.out, e)
	if len(in.out) == 1 {
		s.totals.busy++ // it polls, so it is not draining
	}
}

// unassign takes a ticket from its holder.
func (s *instances) unassign(e *entry) {
	in := e.holder
	e.holder = nil
	last := in.out[len(in.out)-1]
	in.out[e.place], last.place = last, e.place
	in.out[len(in.out)-1] = nil
	in.out = in.out[:len(in.out)-1]
	if len(in.out) == 0 && !in.draining {
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
		if (best == nil || in.cid < best.cid) && !in.coolingDown(gateway, now) {
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

// pollHeap is a heap of polling instances, the alphabetically first CID on top.
type pollHeap []*instance

func (h pollHeap) Len() int           { return len(h) }
func (h pollHeap) Less(i, j int) bool { return h[i].cid < h[j].cid }

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
