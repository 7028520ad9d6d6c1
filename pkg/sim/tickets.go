package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// tickets is what a queue must have and do, by what it was told: the rules of a queue
// once more, without its ways to be fast.
type tickets struct {
	world *World
	queue *queue.Queue
	// capacity is how many tickets an instance may hold.
	capacity int
	kept     map[invoke.ID]*kept
	asking   []asking
	// avoiding says until when some instance may avoid some gateway: meanwhile the
	// order is another one.
	avoiding time.Time
}

// kept is a ticket that was offered, and not withdrawn, finished with or given up since.
type kept struct {
	token    invoke.Token
	deadline time.Time
	// holder was handed it at a time; empty while it waits.
	holder    invoke.CID
	handed    time.Time
	withdrawn bool
}

// asking is how many tickets an instance asks for.
type asking struct {
	cid     invoke.CID
	credits int
}

func newTickets(w *World, q *queue.Queue, capacity int) *tickets {
	return &tickets{world: w, queue: q, capacity: capacity, kept: make(map[invoke.ID]*kept)}
}

// offered notes a ticket that the queue has accepted.
func (k *tickets) offered(t invoke.Ticket, now time.Time) {
	e, known := k.kept[t.ID]
	if !known {
		k.kept[t.ID] = &kept{token: t.Token, deadline: t.Deadline}
		// What comes back may be more than that.
		if k.queue.Waiting() > maxQueued {
			k.broken(t.ID, RuleQueueBounded)
		}
		return
	}
	if e.token != t.Token || now.Sub(e.handed) >= claimGrace {
		e.holder = ""
	}
	e.token, e.withdrawn = t.Token, false
}

// withdrawn notes that nobody wants a ticket any more.
func (k *tickets) withdrawn(id invoke.ID) {
	if e, known := k.kept[id]; known && e.holder != "" {
		e.withdrawn = true
		return
	}
	delete(k.kept, id)
}

// pulled notes that an instance asks for tickets.
func (k *tickets) pulled(cid invoke.CID, credits int) {
	a := k.asks(cid)
	if more := min(credits, k.capacity-a.credits-k.holds(cid)); more > 0 {
		a.credits += more
	}
}

func (k *tickets) asks(cid invoke.CID) *asking {
	for i := range k.asking {
		if k.asking[i].cid == cid {
			return &k.asking[i]
		}
	}
	k.asking = append(k.asking, asking{cid: cid})
	return &k.asking[len(k.asking)-1]
}

func (k *tickets) holds(cid invoke.CID) (n int) {
	for _, e := range k.kept {
		if e.holder == cid {
			n++
		}
	}
	return n
}

// handed notes that an instance is handed a ticket.
func (k *tickets) handed(cid invoke.CID, t invoke.Ticket, now time.Time) {
	a, e := k.asks(cid), k.kept[t.ID]
	inOrder := !now.Before(k.avoiding)
	view := k.queue.View(now)
	switch {
	case e == nil || e.withdrawn || e.holder != "":
		k.broken(t.ID, RuleOnlyWhatWaits)
		return
	case !t.Deadline.After(now):
		k.broken(t.ID, RuleNotTooLate)
	case a.credits <= 0:
		k.broken(t.ID, RuleNoMoreThanAsked)
	case inOrder && slices.ContainsFunc(k.asking, func(o asking) bool { return o.cid < cid && o.credits > 0 }):
		k.broken(t.ID, RuleFirstOfThoseThatAsk)
	case inOrder && !view.NewestFirst && now.Sub(t.Arrived) < view.OldestWait:
		k.broken(t.ID, RuleOldestFirst)
	}
	a.credits--
	e.holder, e.handed = cid, now
}

// done notes that an instance has finished with a ticket.
func (k *tickets) done(cid invoke.CID, id invoke.ID) {
	if e, known := k.kept[id]; known && e.holder == cid {
		delete(k.kept, id)
	}
}

// givenBack notes that an instance could not reach a ticket's gateway.
func (k *tickets) givenBack(cid invoke.CID, id invoke.ID, now time.Time) {
	if e, known := k.kept[id]; known && e.holder == cid {
		k.avoiding = now.Add(avoidFor)
		k.putBack(id, e, e.withdrawn)
	}
}

// left notes that an instance is gone. What it has held for long is claimed.
func (k *tickets) left(cid invoke.CID, now time.Time) {
	k.asking = slices.DeleteFunc(k.asking, func(a asking) bool { return a.cid == cid })
	for id, e := range k.kept {
		if e.holder == cid {
			k.putBack(id, e, e.withdrawn || now.Sub(e.handed) >= claimGrace)
		}
	}
}

// mayLeave notes that an instance was allowed to leave.
func (k *tickets) mayLeave(cid invoke.CID, now time.Time) {
	if k.holds(cid) > 0 {
		k.world.violate(RuleLeaverHoldsNothing, 0)
	}
	if !slices.ContainsFunc(k.asking, func(a asking) bool { return a.cid != cid }) {
		k.world.violate(RuleLastStays, 0)
	}
	k.left(cid, now)
}

func (k *tickets) putBack(id invoke.ID, e *kept, over bool) {
	if e.holder = ""; over {
		delete(k.kept, id)
	}
}

// cleared notes that the queue was emptied.
func (k *tickets) cleared() { clear(k.kept) }

// audit compares what the queue has with what it must have. It must come before what a
// queue is told, since it finds out by that which tickets were too late.
func (k *tickets) audit(now time.Time) {
	has := k.queue.Waiting() + k.queue.Out()
	if has == len(k.kept) {
		return
	}
	for id, e := range k.kept {
		if !k.queue.Knows(id) && e.holder == "" && !e.deadline.After(now) {
			delete(k.kept, id)
		}
	}
	switch {
	case has < len(k.kept):
		k.world.violate(RuleTicketKept, 0)
	case has > len(k.kept):
		k.world.violate(RuleTicketGone, 0)
	}
}

func (k *tickets) broken(id invoke.ID, rule Rule) {
	if in := k.world.ledger.byID[id]; in != nil {
		k.world.ledger.broken(in, rule)
	}
}
