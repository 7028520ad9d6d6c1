package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// lane holds the tickets of a gateway that some instance avoids, so that they are
// in nobody's way. A queue of which no instance avoids anything has no lanes, and
// pays nothing for them.
type lane struct {
	ticketList
	until time.Time // the last instance avoids the gateway until then
}

// GiveBack says that an instance could not reach the gateway of a ticket, so that
// nothing is known of the call. The ticket goes back to its place, and for AvoidFor
// the instance is handed none of that gateway. Tickets that it does not hold any
// more are ignored.
func (q *Queue) GiveBack(cid invoke.CID, id invoke.ID, now time.Time) {
	in, known := q.instances[cid]
	if !known {
		return
	}
	e, holds := in.out[id]
	if !holds {
		return
	}
	q.avoid(in, e.ticket.Gateway, now)
	if e.withdrawn {
		q.forget(e)
	} else {
		q.putBack(e)
	}
}

// avoid keeps a gateway's tickets from an instance.
func (q *Queue) avoid(in *instance, gateway string, now time.Time) {
	for other, until := range in.avoids {
		if !until.After(now) {
			delete(in.avoids, other)
		}
	}
	if in.avoids == nil {
		in.avoids = make(map[string]time.Time)
	}
	until := now.Add(q.limits.AvoidFor)
	in.avoids[gateway] = until
	q.setAside(gateway, until)
}

// setAside puts a gateway's tickets into a lane until a time.
func (q *line) setAside(gateway string, until time.Time) {
	if l, there := q.lanes[gateway]; there {
		l.until = until
		return
	}
	if q.lanes == nil {
		q.lanes = make(map[string]*lane)
	}
	l := &lane{until: until}
	for e := q.waiting.first; e != nil; {
		next := e.next
		if e.ticket.Gateway == gateway {
			q.waiting.remove(e)
			l.insert(e)
		}
		e = next
	}
	q.lanes[gateway] = l
}

// mergeLanes ends the lanes of gateways that no instance avoids any more.
func (q *line) mergeLanes(now time.Time) {
	for gateway, l := range q.lanes {
		if !l.until.After(now) {
			delete(q.lanes, gateway)
			q.waiting.absorb(&l.ticketList)
		}
	}
}

// expireLanes is expire for the lanes, each of which has an oldest ticket.
func (q *Queue) expireLanes(now time.Time) (expired int) {
	for _, l := range q.lanes {
		for e := l.first; e != nil && !e.ticket.Deadline.After(now); e = l.first {
			q.drop(e)
			expired++
		}
	}
	return expired
}

// list is where a ticket waits, or would.
func (q *line) list(e *entry) *ticketList {
	if len(q.lanes) > 0 {
		if l, there := q.lanes[e.ticket.Gateway]; there {
			return &l.ticketList
		}
	}
	return &q.waiting
}

// pairByLane is pair while there are lanes. Whether a ticket can be handed out
// depends on its gateway alone, so only the heads need to be looked at.
func (q *line) pairByLane(asking askHeap, now time.Time) (best *entry, taker *instance) {
	consider := func(e *entry) {
		if e == nil || best != nil && !q.turn.first(e, best) {
			return
		}
		if in := asking.takerOf(e.ticket.Gateway, now); in != nil {
			best, taker = e, in
		}
	}
	consider(q.turn.head(&q.waiting))
	for _, l := range q.lanes {
		consider(q.turn.head(&l.ticketList))
	}
	return best, taker
}

// takerOf is the first of the asking instances that does not avoid a gateway.
func (h askHeap) takerOf(gateway string, now time.Time) *instance {
	if first := h[0]; !first.avoiding(gateway, now) {
		return first
	}
	var best *instance
	for _, in := range h {
		if (best == nil || in.cid < best.cid) && !in.avoiding(gateway, now) {
			best = in
		}
	}
	return best
}

func (in *instance) avoiding(gateway string, now time.Time) bool {
	return in.avoids[gateway].After(now)
}

// oldest is the waiting ticket that arrived first, or nil.
func (q *line) oldest() *entry {
	first := q.waiting.first
	for _, l := range q.lanes {
		if l.first != nil && (first == nil || l.first.before(first)) {
			first = l.first
		}
	}
	return first
}

// newest is the waiting ticket that arrived last, or nil.
func (q *line) newest() *entry {
	last := q.waiting.last
	for _, l := range q.lanes {
		if l.last != nil && (last == nil || last.before(l.last)) {
			last = l.last
		}
	}
	return last
}
