package queue

import (
	"container/heap"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// instances are those that have joined: which of them ask, and what they come to.
type instances struct {
	joined map[invocation.CID]*instance
	asking askHeap
	crowd  crowd
	// asked counts the tickets that were ever asked for.
	asked uint64
}

// instance is a joined instance. It is in the heap of those that ask exactly
// while credits is positive and it is not retired.
type instance struct {
	cid      invocation.CID
	capacity int // credits + len(out) <= capacity
	credits  int
	out      []*entry // in no order
	asked    bool     // has ever asked, so that it is known to work
	retired  bool
	index    int // in the heap, -1 if not there
	// idleSince is when it came to ask for all that it can hold, which it
	// does only while it runs nothing; zero while it does not.
	idleSince time.Time
	// avoids are the gateways that it could not reach, and until when it is
	// handed no ticket of them.
	avoids map[string]time.Time
}

// crowd is what the instances that are not retired come to. It is kept as they
// change, since it is asked for more often than it may cost to look at all of them.
type crowd struct {
	all int
	// asked are those that have ever asked for work, and busy those that hold a
	// ticket.
	asked, busy int
	// credits is how many tickets they ask for.
	credits int
}

// count adds an instance that asks for nothing at the moment, or takes it away.
func (c *crowd) count(in *instance, n int) {
	c.all += n
	if in.asked {
		c.asked += n
	}
	if len(in.out) > 0 {
		c.busy += n
	}
}

// join adds an instance, and tells whether it was not there.
func (s *instances) join(cid invocation.CID, capacity int) bool {
	if _, known := s.joined[cid]; known {
		return false
	}
	in := &instance{cid: cid, capacity: capacity, index: -1}
	s.joined[cid] = in
	s.crowd.count(in, 1)
	return true
}

// remove removes an instance that holds nothing.
func (s *instances) remove(in *instance) {
	s.stopAsking(in)
	if !in.retired {
		s.crowd.count(in, -1)
	}
	delete(s.joined, in.cid)
}

// retire gives an instance nothing more, and tells whether that changed anything.
func (s *instances) retire(in *instance) bool {
	if in.retired {
		return false
	}
	s.stopAsking(in)
	s.crowd.count(in, -1)
	in.retired = true
	return true
}

// ask lets an instance ask for credits more tickets, as far as it can hold them.
func (s *instances) ask(in *instance, credits int, now time.Time) {
	if !in.asked {
		in.asked = true
		if !in.retired {
			s.crowd.asked++
		}
	}
	credits = min(credits, in.capacity-in.credits-len(in.out))
	if credits <= 0 || in.retired {
		return
	}
	in.credits += credits
	s.crowd.credits += credits
	s.asked += uint64(credits)
	if in.credits == in.capacity {
		in.idleSince = now
	}
	if in.index < 0 {
		heap.Push(&s.asking, in)
	}
}

// stopAsking takes back what an instance asked for.
func (s *instances) stopAsking(in *instance) {
	s.crowd.credits -= in.credits
	in.credits, in.idleSince = 0, time.Time{}
	if in.index >= 0 {
		heap.Remove(&s.asking, in.index)
	}
}

// hand gives a ticket to an instance that asks.
func (s *instances) hand(e *entry, in *instance, now time.Time) {
	in.idleSince = time.Time{}
	in.credits--
	s.crowd.credits--
	if in.credits == 0 {
		s.stopAsking(in)
	}
	e.holder, e.handed = in, now
	e.place = len(in.out)
	in.out = append(in.out, e)
	if len(in.out) == 1 {
		s.crowd.busy++ // it asked, so it is not retired
	}
}

// takeBack takes a ticket from its holder.
func (s *instances) takeBack(e *entry) {
	in := e.holder
	e.holder = nil
	last := in.out[len(in.out)-1]
	in.out[e.place], last.place = last, e.place
	in.out[len(in.out)-1] = nil
	in.out = in.out[:len(in.out)-1]
	if len(in.out) == 0 && !in.retired {
		s.crowd.busy--
	}
}

// takerOf is the first of the asking instances that does not avoid a gateway, or nil.
// There must be one that asks.
func (s *instances) takerOf(gateway string, now time.Time) *instance {
	if first := s.asking[0]; !first.avoiding(gateway, now) {
		return first
	}
	var best *instance
	for _, in := range s.asking {
		if (best == nil || in.cid < best.cid) && !in.avoiding(gateway, now) {
			best = in
		}
	}
	return best
}

// avoid keeps a gateway's tickets from an instance.
func (in *instance) avoid(gateway string, until, now time.Time) {
	for other, until := range in.avoids {
		if !until.After(now) {
			delete(in.avoids, other)
		}
	}
	if in.avoids == nil {
		in.avoids = make(map[string]time.Time)
	}
	in.avoids[gateway] = until
}

func (in *instance) avoiding(gateway string, now time.Time) bool {
	return len(in.avoids) > 0 && in.avoids[gateway].After(now)
}

// askHeap is a heap of asking instances, the alphabetically first CID on top.
type askHeap []*instance

func (h askHeap) Len() int           { return len(h) }
func (h askHeap) Less(i, j int) bool { return h[i].cid < h[j].cid }

func (h askHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for container/heap only.
func (h *askHeap) Push(x any) {
	in := x.(*instance)
	in.index = len(*h)
	*h = append(*h, in)
}

// Pop is for container/heap only.
func (h *askHeap) Pop() any {
	old := *h
	in := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	in.index = -1
	return in
}
