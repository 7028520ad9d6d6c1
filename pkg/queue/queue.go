package queue

import (
	"container/heap"
	"errors"
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

var (
	// ErrFull is returned by Offer when MaxWaiting tickets wait already.
	ErrFull = errors.New("queue: full")
	// ErrUnknownInstance is returned for a CID that has not joined, or that
	// has left.
	ErrUnknownInstance = errors.New("queue: unknown instance")
	// ErrJoined is returned by Join for a CID that has joined already.
	ErrJoined = errors.New("queue: instance has joined already")
)

// Limits bound a queue.
type Limits struct {
	// MaxWaiting is how many tickets may wait, at least 1.
	MaxWaiting int
	// ClaimGrace is how long an instance may hold a ticket before an offer
	// of the same ticket, which says that nobody has claimed it, puts it
	// back. Too short makes instances claim in vain; too long makes a call
	// wait for an instance that hangs.
	ClaimGrace time.Duration
}

// Queue is the queue of one function. It is not safe for concurrent use.
type Queue struct {
	limits    Limits
	waiting   ticketList
	entries   map[invoke.ID]*entry
	instances map[invoke.CID]*instance
	asking    askHeap

	arrived  uint64
	departed uint64
	seq      uint64
}

// New makes an empty queue.
func New(limits Limits) *Queue {
	return &Queue{
		limits:    limits,
		entries:   make(map[invoke.ID]*entry),
		instances: make(map[invoke.CID]*instance),
	}
}

// entry is a ticket that the queue knows: it waits if holder is nil, and is
// out with holder otherwise.
type entry struct {
	ticket     invoke.Ticket
	seq        uint64 // breaks ties of Arrived
	holder     *instance
	handed     time.Time // valid while holder is set
	prev, next *entry    // valid while holder is nil
}

// instance is a joined instance. It is in the heap of those that ask exactly
// while credits is positive and it is not retired.
type instance struct {
	cid      invoke.CID
	capacity int // credits + len(out) <= capacity
	credits  int
	out      map[invoke.ID]*entry
	retired  bool
	index    int // in the heap, -1 if not there
}

// Offer adds a ticket. Offering one again that waits changes nothing; one that
// has been out for ClaimGrace goes back to its place in the order of arrival.
// The error is ErrFull or nil.
func (q *Queue) Offer(t invoke.Ticket, now time.Time) error {
	if e, known := q.entries[t.ID]; known {
		if e.holder != nil && now.Sub(e.handed) >= q.limits.ClaimGrace {
			q.putBack(e)
		}
		return nil
	}
	if q.waiting.len >= q.limits.MaxWaiting {
		return ErrFull
	}
	q.seq++
	e := &entry{ticket: t, seq: q.seq}
	q.entries[t.ID] = e
	q.waiting.insert(e)
	q.arrived++
	return nil
}

// Withdraw forgets a ticket, whether it waits or is out. It tells whether the
// ticket was waiting.
func (q *Queue) Withdraw(id invoke.ID) bool {
	e, known := q.entries[id]
	if !known {
		return false
	}
	if e.holder != nil {
		q.forget(e)
		return false
	}
	q.waiting.remove(e)
	delete(q.entries, id)
	q.departed++
	return true
}

// Join adds an instance that can hold capacity tickets at a time, at least 1.
// It asks for nothing yet.
func (q *Queue) Join(cid invoke.CID, capacity int) error {
	if _, known := q.instances[cid]; known {
		return fmt.Errorf("%w: %s", ErrJoined, cid)
	}
	q.instances[cid] = &instance{cid: cid, capacity: capacity, out: make(map[invoke.ID]*entry), index: -1}
	return nil
}

// Leave removes an instance. Tickets that it holds go back to their places:
// if it had claimed them, claiming them again is refused at the gateway. It
// returns how many tickets that were.
func (q *Queue) Leave(cid invoke.CID) (held int) {
	in, known := q.instances[cid]
	if !known {
		return 0
	}
	q.stopAsking(in)
	held = len(in.out)
	for _, e := range in.out {
		q.putBack(e)
	}
	delete(q.instances, cid)
	return held
}

// Pull lets an instance ask for credits more tickets, but for no more than its
// capacity allows. A retired instance asks in vain.
func (q *Queue) Pull(cid invoke.CID, credits int) error {
	in, known := q.instances[cid]
	if !known {
		return fmt.Errorf("%w: %s", ErrUnknownInstance, cid)
	}
	credits = min(credits, in.capacity-in.credits-len(in.out))
	if credits <= 0 || in.retired {
		return nil
	}
	in.credits += credits
	if in.index < 0 {
		heap.Push(&q.asking, in)
	}
	return nil
}

// Done says that an instance has finished with a ticket, whatever came of it.
// Tickets that the instance does not hold any more are ignored.
func (q *Queue) Done(cid invoke.CID, id invoke.ID) {
	if in, known := q.instances[cid]; known {
		if e, holds := in.out[id]; holds {
			q.forget(e)
		}
	}
}

// Retire lets an instance finish what it holds and gives it nothing more. It
// tells whether that changed anything.
func (q *Queue) Retire(cid invoke.CID) bool {
	in, known := q.instances[cid]
	if !known || in.retired {
		return false
	}
	q.stopAsking(in)
	in.retired = true
	return true
}

// Match hands waiting tickets to asking instances until one side is empty, and
// forgets tickets past their deadline. It calls deliver for each ticket handed
// out and returns how many it forgot.
func (q *Queue) Match(now time.Time, deliver func(invoke.CID, invoke.Ticket)) (expired int) {
	for q.waiting.first != nil && len(q.asking) > 0 {
		e := q.waiting.first
		q.waiting.remove(e)
		q.departed++
		if !e.ticket.Deadline.After(now) {
			delete(q.entries, e.ticket.ID)
			expired++
			continue
		}
		in := q.asking[0]
		in.credits--
		if in.credits == 0 {
			q.stopAsking(in)
		}
		e.holder, e.handed = in, now
		in.out[e.ticket.ID] = e
		deliver(in.cid, e.ticket)
	}
	return expired
}

// Clear removes all tickets that wait and returns them in order of arrival.
func (q *Queue) Clear() []invoke.Ticket {
	cleared := make([]invoke.Ticket, 0, q.waiting.len)
	for e := q.waiting.first; e != nil; e = q.waiting.first {
		q.waiting.remove(e)
		delete(q.entries, e.ticket.ID)
		q.departed++
		cleared = append(cleared, e.ticket)
	}
	return cleared
}

// putBack makes an entry that is out wait again.
func (q *Queue) putBack(e *entry) {
	delete(e.holder.out, e.ticket.ID)
	e.holder = nil
	q.waiting.insert(e)
	q.departed--
}

// forget removes an entry that is out.
func (q *Queue) forget(e *entry) {
	delete(e.holder.out, e.ticket.ID)
	delete(q.entries, e.ticket.ID)
}

// stopAsking takes back what an instance asked for.
func (q *Queue) stopAsking(in *instance) {
	in.credits = 0
	if in.index >= 0 {
		heap.Remove(&q.asking, in.index)
	}
}
