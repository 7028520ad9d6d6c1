package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
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
	// ClaimGrace is how long an instance may hold a ticket before an offer of the same ticket,
	// which says that no instance has claimed it, puts it back. If it is too short, instances
	// make claims that fail; if it is too long, a call waits for an instance that hangs.
	ClaimGrace time.Duration
	// CoolDown is how long an instance that could not reach a gateway gets none of its
	// tickets. If it is too short, the instance fails again; if it is too long, calls wait for
	// others after the network has healed.
	CoolDown time.Duration
}

// Queue is the queue of one function. It is not safe for concurrent use.
type Queue struct {
	limits Limits
	// entries are all tickets that the queue knows: those of the backlog, and those that
	// instances hold.
	entries   entries
	backlog   backlog
	instances instances
	seq       uint64
	// recallsPausedUntil is when Recalls and BindLate may look at all loans again.
	recallsPausedUntil time.Time
	// recalledFor are the tickets for which BindLate has recalled places.
	recalledFor []invocation.ID
}

// New makes an empty queue. Its maps come with the first ticket and the first instance: most functions
// have neither.
func New(limits Limits) *Queue { return &Queue{limits: limits} }

// entry is a ticket that the queue knows: it waits if holder is nil, and otherwise holder has
// it.
type entry struct {
	ticket    invocation.Ticket
	seq       uint64 // breaks ties of Arrived
	holder    *instance
	handedAt  time.Time // valid while holder is set
	cancelled bool      // valid while holder is set
	lent      bool      // valid while holder is set: holder keeps the place for the gateway
	// rebound says that an earlier holder may claim it as well.
	rebound  bool
	outIndex int // in holder.out
	// The links are valid while holder is nil; those above are as many as the
	// entry has levels above the lowest.
	link
	above []link
}

// overdue reports whether an instance has held the ticket for so long that it has claimed the call, or
// hangs. A call that waits for a core is not claimed until then, however long that takes.
func (e *entry) overdue(now time.Time, grace time.Duration) bool {
	return now.Sub(e.handedAt) >= grace && e.holder.awaits != e.ticket.ID
}

// Offer adds a ticket. To offer a waiting ticket again changes its age at most, if that was more than
// it seemed: what lay in the connection of a scheduler that stood still looks younger than it is. A
// ticket that an instance has held for ClaimGrace goes back to its place in the order of arrival,
// unless the instance says that the call waits there for a core, and so is not claimed yet. A new
// token means that the instance which had claimed the call no longer has it, so that the ticket
// with the old token is void; the new one may have a later deadline.
// The error is ErrFull or nil.
func (q *Queue) Offer(t invocation.Ticket, now time.Time) error {
	if e, known := q.entries[t.ID]; known {
		released := e.ticket.Token != t.Token
		if e.holder != nil && (released || e.overdue(now, q.limits.ClaimGrace)) {
			q.requeue(e)
		}
		if released {
			e.ticket.Token, e.ticket.Deadline = t.Token, t.Deadline
		}
		e.cancelled = false
		if t.Arrived.Before(e.ticket.Arrived) {
			q.backlog.correctAge(e, t)
		}
		return nil
	}
	if q.Full() {
		return ErrFull
	}
	q.seq++
	e := &entry{ticket: t, seq: q.seq, above: linksAbove(q.seq)}
	if q.entries == nil {
		q.entries = make(entries)
	}
	q.entries[t.ID] = e
	q.backlog.insert(e)
	return nil
}

// Full reports whether the queue takes no further ticket now.
func (q *Queue) Full() bool { return q.Waiting() >= q.limits.MaxWaiting }

// Contains reports whether the queue has a ticket of that invocation, waiting or held.
func (q *Queue) Contains(id invocation.ID) bool {
	_, known := q.entries[id]
	return known
}

// IsWaiting reports whether the ticket of that invocation waits.
func (q *Queue) IsWaiting(id invocation.ID) bool {
	e, known := q.entries[id]
	return known && e.holder == nil
}

// Cancel removes a waiting ticket, and reports whether it did. One that an instance
// holds stays with it, since the instance may run the call, but will not wait again.
func (q *Queue) Cancel(id invocation.ID) bool {
	e, known := q.entries[id]
	if !known {
		return false
	}
	if e.holder != nil {
		e.cancelled = true
		return false
	}
	q.removeWaiting(e)
	return true
}

// Clear removes all waiting tickets and returns them in order of arrival.
func (q *Queue) Clear() []invocation.Ticket {
	cleared := make([]invocation.Ticket, 0, q.Waiting())
	for e := q.backlog.oldest(); e != nil; e = q.backlog.oldest() {
		q.removeWaiting(e)
		cleared = append(cleared, e.ticket)
	}
	return cleared
}

// Join adds an instance that can hold capacity tickets at a time, at least 1.
// It does not poll yet.
func (q *Queue) Join(cid invocation.CID, capacity int) error {
	if !q.instances.join(cid, capacity) {
		return fmt.Errorf("%w: %s", ErrJoined, cid)
	}
	return nil
}

// Leave removes an instance. Tickets that it was handed lately go back to their
// places: if it had claimed them, the gateway refuses a second claim. Tickets that it
// has held for ClaimGrace, without saying that they wait for a core, are dropped, since they are claimed: a
// gateway that still wants one offers it again. To requeue them would create instances for calls that run
// already. It returns how many calls the instance had, as far as the queue can know: its
// tickets and, unless it was idle, its loans.
func (q *Queue) Leave(cid invocation.CID, now time.Time) (held int) {
	in, known := q.instances.joined[cid]
	if !known {
		return 0
	}
	held = in.calls(now)
	for len(in.out) > 0 {
		e := in.out[0]
		if e.cancelled || e.overdue(now, q.limits.ClaimGrace) {
			q.removeHeld(e)
		} else {
			q.requeue(e)
		}
	}
	q.instances.removeInstance(in)
	q.trim()
	return held
}

// trim gives the maps and the heap of an unused queue back: they do not shrink, and most queues are unused.
func (q *Queue) trim() {
	if len(q.entries) == 0 && len(q.instances.joined) == 0 {
		q.entries, q.instances.joined, q.instances.pollers = nil, nil, nil
	}
}

// Pull is what an instance says of its places.
type Pull struct {
	// Credits is for how many more tickets it polls.
	Credits int
	// Loans are all its loans, one for each gateway.
	Loans []Loan
	// Idle is for how long it has run nothing, if it has loans; 0 if it runs a call, or has
	// until a moment ago.
	Idle time.Duration
	// NodeBusy says that more threads want to run on its node than there are cores, and
	// AwaitsCore that it has a call that has long waited for one.
	NodeBusy, AwaitsCore bool
	// Awaits is the ticket of that call; zero if the call has begun or came by a loan.
	Awaits invocation.ID
}

// Pull lets an instance poll for more tickets, and replaces its loans, but for no more than its
// capacity allows. A draining instance polls for none and lends nothing.
func (q *Queue) Pull(cid invocation.CID, p Pull, now time.Time) error {
	in, known := q.instances.joined[cid]
	if !known {
		return fmt.Errorf("%w: %s", ErrUnknownInstance, cid)
	}
	q.instances.pull(in, p, now)
	return nil
}

// Done says that an instance has finished with a ticket, successfully or not.
// Tickets that the instance does not hold any more are ignored.
func (q *Queue) Done(cid invocation.CID, id invocation.ID) {
	if e := q.entries.held(cid, id); e != nil {
		q.removeHeld(e)
	}
}

// Requeue says that an instance could not reach the gateway of a ticket, so that
// the state of the call is unknown. The ticket goes back to its place, and for
// CoolDown the instance is handed no ticket of that gateway. Tickets that the
// instance does not hold any more are ignored.
func (q *Queue) Requeue(cid invocation.CID, id invocation.ID, now time.Time) {
	e := q.entries.held(cid, id)
	if e == nil {
		return
	}
	until := now.Add(q.limits.CoolDown)
	e.holder.coolDown(e.ticket.Gateway, until, now)
	q.backlog.separate(e.ticket.Gateway, until)
	if e.cancelled {
		q.removeHeld(e)
	} else {
		q.requeue(e)
	}
}

// Drain lets an instance finish what it holds and hands it nothing more. It
// reports whether that changed anything.
func (q *Queue) Drain(cid invocation.CID) bool {
	in, known := q.instances.joined[cid]
	return known && q.instances.drain(in)
}

// Draining reports whether a joined instance drains.
func (q *Queue) Draining(cid invocation.CID) bool {
	in := q.instances.joined[cid]
	return in != nil && in.draining
}

// entries are tickets by the ID of their invocation.
type entries map[invocation.ID]*entry

// held is a ticket that an instance holds, or nil.
func (es entries) held(cid invocation.CID, id invocation.ID) *entry {
	if e := es[id]; e != nil && e.holder != nil && e.holder.cid == cid {
		return e
	}
	return nil
}

// removeWaiting removes an entry that waits.
func (q *Queue) removeWaiting(e *entry) {
	q.backlog.remove(e)
	delete(q.entries, e.ticket.ID)
	q.trim()
}

// requeue makes an entry that is out wait again.
func (q *Queue) requeue(e *entry) {
	q.instances.unassign(e)
	e.rebound = false
	q.backlog.requeue(e)
}

// removeHeld removes an entry that is out.
func (q *Queue) removeHeld(e *entry) {
	q.instances.unassign(e)
	delete(q.entries, e.ticket.ID)
}
