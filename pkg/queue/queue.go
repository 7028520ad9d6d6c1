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
	// AvoidFor is how long an instance that could not reach a gateway is
	// handed no ticket of it. Too short makes it fail again; too long makes
	// calls wait for others after the network has healed.
	AvoidFor time.Duration
}

// Queue is the queue of one function. It is not safe for concurrent use.
type Queue struct {
	limits Limits
	line

	entries   map[invoke.ID]*entry
	instances map[invoke.CID]*instance
	crowd     crowd
	asking    askHeap

	arrived  uint64
	departed uint64
	asked    uint64
	seq      uint64
}

// line is the tickets that wait, and whose turn it is.
type line struct {
	// waiting are all but those in lanes, by gateway: a gateway has a lane while some
	// instance avoids it.
	waiting ticketList
	lanes   map[string]*lane
	turn    turn
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
	ticket    invoke.Ticket
	seq       uint64 // breaks ties of Arrived
	holder    *instance
	handed    time.Time // valid while holder is set
	withdrawn bool      // valid while holder is set
	// The links are valid while holder is nil; those above are as many as the
	// entry has levels above the lowest.
	link
	above []link
}

// instance is a joined instance. It is in the heap of those that ask exactly
// while credits is positive and it is not retired.
type instance struct {
	cid      invoke.CID
	capacity int // credits + len(out) <= capacity
	credits  int
	out      map[invoke.ID]*entry
	asked    bool // has ever asked, so that it is known to work
	retired  bool
	index    int // in the heap, -1 if not there
	// idleSince is when it came to ask for all that it can hold, which it
	// does only while it runs nothing; zero while it does not.
	idleSince time.Time
	// avoids are the gateways that it could not reach, and until when it is
	// handed no ticket of them.
	avoids map[string]time.Time
}

// Offer adds a ticket. Offering one again that waits changes nothing; one that
// has been out for ClaimGrace goes back to its place in the order of arrival. A
// new token says that the instance which had claimed the call has given it back,
// so that the ticket with the old one is void.
// The error is ErrFull or nil.
func (q *Queue) Offer(t invoke.Ticket, now time.Time) error {
	if e, known := q.entries[t.ID]; known {
		released := e.ticket.Token != t.Token
		if e.holder != nil && (released || now.Sub(e.handed) >= q.limits.ClaimGrace) {
			q.putBack(e)
		}
		e.ticket.Token = t.Token
		e.withdrawn = false
		return nil
	}
	if q.Waiting() >= q.limits.MaxWaiting {
		return ErrFull
	}
	q.seq++
	e := &entry{ticket: t, seq: q.seq, above: linksAbove(q.seq)}
	q.entries[t.ID] = e
	q.list(e).insert(e)
	q.arrived++
	return nil
}

// Knows tells whether the queue has a ticket of that invocation, waiting or out.
func (q *Queue) Knows(id invoke.ID) bool {
	_, known := q.entries[id]
	return known
}

// Waits tells whether the ticket of that invocation waits.
func (q *Queue) Waits(id invoke.ID) bool {
	e, known := q.entries[id]
	return known && e.holder == nil
}

// Withdraw removes a ticket that waits, and tells whether it did. One that is out
// stays with its holder, which may run the call, and will not wait again.
func (q *Queue) Withdraw(id invoke.ID) bool {
	e, known := q.entries[id]
	if !known {
		return false
	}
	if e.holder != nil {
		e.withdrawn = true
		return false
	}
	q.drop(e)
	return true
}

// Join adds an instance that can hold capacity tickets at a time, at least 1.
// It asks for nothing yet.
func (q *Queue) Join(cid invoke.CID, capacity int) error {
	if _, known := q.instances[cid]; known {
		return fmt.Errorf("%w: %s", ErrJoined, cid)
	}
	in := &instance{cid: cid, capacity: capacity, out: make(map[invoke.ID]*entry), index: -1}
	q.instances[cid] = in
	q.crowd.count(in, 1)
	return nil
}

// Leave removes an instance. Tickets that it was handed lately go back to their
// places: if it had claimed them, claiming them again is refused at the gateway.
// Those that it has held for ClaimGrace are forgotten, since they are claimed: a
// gateway that still wants one offers it again. To put them back would ask for
// instances to run calls that run already. It returns how many tickets it held.
func (q *Queue) Leave(cid invoke.CID, now time.Time) (held int) {
	in, known := q.instances[cid]
	if !known {
		return 0
	}
	q.stopAsking(in)
	held = len(in.out)
	for _, e := range in.out {
		if e.withdrawn || now.Sub(e.handed) >= q.limits.ClaimGrace {
			q.forget(e)
		} else {
			q.putBack(e)
		}
	}
	q.remove(in)
	return held
}

// Pull lets an instance ask for credits more tickets, but for no more than its
// capacity allows. A retired instance asks in vain.
func (q *Queue) Pull(cid invoke.CID, credits int, now time.Time) error {
	in, known := q.instances[cid]
	if !known {
		return fmt.Errorf("%w: %s", ErrUnknownInstance, cid)
	}
	if !in.asked {
		in.asked = true
		if !in.retired {
			q.crowd.asked++
		}
	}
	credits = min(credits, in.capacity-in.credits-len(in.out))
	if credits <= 0 || in.retired {
		return nil
	}
	in.credits += credits
	q.crowd.credits += credits
	q.asked += uint64(credits)
	if in.credits == in.capacity {
		in.idleSince = now
	}
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
	q.crowd.count(in, -1)
	in.retired = true
	return true
}

// Match hands waiting tickets to asking instances until no ticket is left that one
// of those that ask may be handed. It calls deliver for each ticket handed out.
//
// Tickets past their deadline are forgotten if they come up meanwhile, or if they
// are then the oldest that wait, of an avoided gateway or of the others. Match
// returns how many it forgot.
func (q *Queue) Match(now time.Time, deliver func(invoke.CID, invoke.Ticket)) (expired int) {
	if len(q.lanes) > 0 {
		q.mergeLanes(now)
	}
	q.calmDown(now)
	for {
		expired += q.expire(now)
		if q.Waiting() == 0 || len(q.asking) == 0 {
			break
		}
		e, in := q.pair(now)
		if e == nil {
			break
		}
		if !e.ticket.Deadline.After(now) {
			q.drop(e)
			expired++
			continue
		}
		q.handOut(e, in, now)
		deliver(in.cid, e.ticket)
	}
	q.calmDown(now)
	return expired
}

// expire forgets the oldest tickets as long as they are past their deadline.
func (q *Queue) expire(now time.Time) (expired int) {
	for e := q.waiting.first; e != nil && !e.ticket.Deadline.After(now); e = q.waiting.first {
		q.drop(e)
		expired++
	}
	if len(q.lanes) > 0 {
		expired += q.expireLanes(now)
	}
	return expired
}

// pair is the ticket whose turn it is and the instance that gets it, or nothing.
func (q *Queue) pair(now time.Time) (*entry, *instance) {
	if len(q.lanes) > 0 {
		return q.pairByLane(q.asking, now)
	}
	return q.turn.head(&q.waiting), q.asking[0]
}

func (q *Queue) handOut(e *entry, in *instance, now time.Time) {
	q.list(e).remove(e)
	q.departed++
	in.idleSince = time.Time{}
	in.credits--
	q.crowd.credits--
	if in.credits == 0 {
		q.stopAsking(in)
	}
	e.holder, e.handed = in, now
	in.out[e.ticket.ID] = e
	if len(in.out) == 1 {
		q.crowd.busy++ // it asked, so it is not retired
	}
	q.judge(&e.ticket, q.Waiting(), now)
}

// Clear removes all tickets that wait and returns them in order of arrival.
func (q *Queue) Clear() []invoke.Ticket {
	cleared := make([]invoke.Ticket, 0, q.Waiting())
	for e := q.oldest(); e != nil; e = q.oldest() {
		q.drop(e)
		cleared = append(cleared, e.ticket)
	}
	return cleared
}

// drop removes an entry that waits.
func (q *Queue) drop(e *entry) {
	q.list(e).remove(e)
	delete(q.entries, e.ticket.ID)
	q.departed++
}

// putBack makes an entry that is out wait again.
func (q *Queue) putBack(e *entry) {
	q.takeBack(e)
	e.holder = nil
	q.list(e).insert(e)
	q.departed--
}

// forget removes an entry that is out.
func (q *Queue) forget(e *entry) {
	q.takeBack(e)
	delete(q.entries, e.ticket.ID)
}

// takeBack takes an entry from its holder.
func (q *Queue) takeBack(e *entry) {
	in := e.holder
	delete(in.out, e.ticket.ID)
	if len(in.out) == 0 && !in.retired {
		q.crowd.busy--
	}
}

// remove removes an instance that holds nothing.
func (q *Queue) remove(in *instance) {
	q.stopAsking(in)
	if !in.retired {
		q.crowd.count(in, -1)
	}
	delete(q.instances, in.cid)
}

// stopAsking takes back what an instance asked for.
func (q *Queue) stopAsking(in *instance) {
	q.crowd.credits -= in.credits
	in.credits, in.idleSince = 0, time.Time{}
	if in.index >= 0 {
		heap.Remove(&q.asking, in.index)
	}
}
