package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// tickets is what a queue must have and do, by what it was told: the rules of a queue
// once more, without its ways to be fast.
type tickets struct {
	world *World
	core  *core.Function
	// capacity is how many tickets an instance may hold.
	capacity int
	kept     map[invocation.ID]*kept
	asking   []asking
	// avoiding says until when some instance may avoid some gateway: meanwhile the
	// order is another one.
	avoiding time.Time
	// newestFirst says that the newest ticket was handed out first before the last event.
	newestFirst bool
	// order is what it must be.
	order order
	// unheard are the gateways that the last audit could not hear.
	unheard map[string]bool
}

// kept is a ticket that was offered, and not cancelled, finished with or given up since.
type kept struct {
	token             invocation.Token
	gateway           string
	arrived, deadline time.Time
	// holder was handed it at a time; empty while it waits.
	holder    invocation.CID
	handed    time.Time
	cancelled bool
	// rebound says that an instance before holder may claim it, too, and awaitsCore that holder says that
	// the call waits there for a core.
	rebound, awaitsCore bool
}

// asking is how many tickets an instance asks for, and how many places it has lent.
type asking struct {
	cid           invocation.CID
	credits, loan int
	loans         lendings
	// pulls says that it has pulled, and busy that its node is.
	pulls, busy bool
	// idle says that it runs nothing by its loans, as far as it says.
	idle bool
}

func newTickets(w *World, f *core.Function, capacity int) *tickets {
	return &tickets{world: w, core: f, capacity: capacity, kept: make(map[invocation.ID]*kept)}
}

// happened notes an event, and then what came of it.
func (k *tickets) happened(e core.Event, effects []core.Effect, now time.Time) {
	switch e := e.(type) {
	case *core.Offered:
		if _, refused := core.AnswerOf[core.OfferRefused](effects); !refused {
			k.offered(e.Ticket, now)
		}
	case *core.CallCancelled:
		k.cancelled(e.ID)
	case *core.Pulled:
		k.answered(e, now)
	case core.LeaveRequested:
		if answer, _ := core.AnswerOf[core.LeaveAnswered](effects); answer.Granted {
			k.mayLeave(e.CID, answer.Drained, now)
		}
	case core.Left:
		k.left(e.CID, now)
	case core.GatewaysAudited:
		k.audited(e)
	}
	_, closed := e.(core.Closed)
	_, handedOut := core.AnswerOf[*core.HandOut](effects)
	if handedOut {
		k.order.looked(k.waiting(now), now)
	}
	for _, effect := range effects {
		switch effect := effect.(type) {
		case *core.HandOut:
			k.handed(effect.CID, effect.Ticket, now)
			k.mayLend(effect)
			if !effect.Rebound {
				k.order.handed(effect.Ticket, k.waiting(now), now)
			}
			k.newestFirst = true // or not: what is handed out may change the order
		case core.Recall:
			k.asks(effect.CID).loans.recall(effect, now)
		case core.Drain:
			k.stops(effect.CID)
		case core.Redirect:
			k.left(effect.CID, now)
		case core.Refuse:
			k.refused(effect.Tickets)
		}
	}
	if s, is := e.(core.OwnershipChanged); closed || is && s.Term == core.Unserved {
		k.lost(now)
	}
	if rule := k.order.is(k.core.View(now).NewestFirst, k.waiting(now), handedOut, now); rule != "" {
		k.world.violate(rule, 0)
	}
}

// answered notes what an instance says and asks for.
func (k *tickets) answered(e *core.Pulled, now time.Time) {
	for _, d := range e.Done {
		if d.Unclaimed {
			k.givenBack(e.CID, d.ID, now)
		} else {
			k.done(e.CID, d.ID)
		}
	}
	if !e.Wants {
		return
	}
	k.awaits(e.CID, e.Awaits, now) // also of one that drains
	if !k.core.Draining(e.CID) {
		k.pulled(e, now)
	}
}

// awaits notes which of the tickets that an instance holds waits there for a core.
func (k *tickets) awaits(cid invocation.CID, awaited invocation.ID, now time.Time) {
	for id, t := range k.kept {
		if t.holder != cid {
			continue
		}
		if t.awaitsCore && id != awaited {
			t.handed = now // its claim follows
		}
		t.awaitsCore = id == awaited
	}
}

// refused notes tickets that were refused.
func (k *tickets) refused(tickets []invocation.Ticket) {
	for _, t := range tickets {
		if e := k.kept[t.ID]; e == nil || e.holder != "" {
			k.broken(t.ID, RuleOnlyWhatWaits)
		}
		delete(k.kept, t.ID)
	}
}

// lost looks whether all tickets of a function that others serve now, or that was
// deleted, were refused.
func (k *tickets) lost(now time.Time) {
	for id, e := range k.kept {
		switch {
		case e.holder != "" && k.core.Term() != core.Unserved:
			continue // it was deleted, and its instances finish what they have
		case e.deadline.After(now):
			k.world.violate(RuleRefusedToo, 0)
		}
		delete(k.kept, id)
	}
	k.asking = nil
}

// audited notes that tickets were cancelled whose gateways two audits could not hear.
func (k *tickets) audited(e core.GatewaysAudited) {
	unheard := make(map[string]bool)
	for id, t := range k.kept {
		if t.holder != "" || e.Connected(t.gateway) {
			continue
		}
		unheard[t.gateway] = true
		if k.unheard[t.gateway] {
			delete(k.kept, id)
		}
	}
	k.unheard = unheard
}

// offered notes a ticket that the queue has accepted.
func (k *tickets) offered(t invocation.Ticket, now time.Time) {
	e, known := k.kept[t.ID]
	if !known {
		k.kept[t.ID] = &kept{token: t.Token, gateway: t.Gateway, arrived: t.Arrived, deadline: t.Deadline}
		// What comes back may be more than that.
		if k.core.Tickets() > maxQueued {
			k.broken(t.ID, RuleQueueBounded)
		}
		return
	}
	if e.token != t.Token || e.overdue(now) {
		e.holder = ""
	}
	if e.token != t.Token {
		e.token, e.deadline = t.Token, t.Deadline
	}
	e.cancelled = false
	if t.Arrived.Before(e.arrived) {
		e.arrived, e.deadline = t.Arrived, t.Deadline
	}
}

// overdue tells whether a ticket has been with an instance for so long that this has claimed it, or hangs. One
// that waits for a core there has not been claimed.
func (e *kept) overdue(now time.Time) bool {
	return now.Sub(e.handed) >= core.DefaultClaimGrace && !e.awaitsCore
}

// cancelled notes that nobody wants a ticket any more.
func (k *tickets) cancelled(id invocation.ID) {
	if e, known := k.kept[id]; known && e.holder != "" {
		e.cancelled = true
		return
	}
	delete(k.kept, id)
}

// pulled notes that an instance asks for tickets, and what it has lent.
func (k *tickets) pulled(e *core.Pulled, now time.Time) {
	a := k.asks(e.CID)
	a.pulls, a.busy = true, e.NodeBusy
	room := k.capacity - a.credits - k.holds(e.CID)
	a.loan = a.loans.replace(e.Loans, room)
	a.loans.comeBack(e.Credits, now)
	a.credits += max(0, min(e.Credits, room-a.loan))
	a.idle = a.loan == 0 || e.Idle > 0
}

// needs tells whether an instance has a call, as far as anybody here can know: its loans may
// run some unless it says that it is idle.
func (k *tickets) needs(cid invocation.CID, now time.Time) bool {
	a := k.asks(cid)
	idle := a.idle && a.credits+a.loan == k.capacity
	return k.holds(cid) > 0 || !idle && a.loan+a.loans.coming(now) > 0
}

// lent is how many places an instance has lent, as far as it says.
func (k *tickets) lent(cid invocation.CID) int { return k.asks(cid).loan }

func (k *tickets) asks(cid invocation.CID) *asking {
	for i := range k.asking {
		if k.asking[i].cid == cid {
			return &k.asking[i]
		}
	}
	k.asking = append(k.asking, asking{cid: cid})
	return &k.asking[len(k.asking)-1]
}

func (k *tickets) holds(cid invocation.CID) (n int) {
	for _, e := range k.kept {
		if e.holder == cid {
			n++
		}
	}
	return n
}

// handed notes that an instance is handed a ticket.
func (k *tickets) handed(cid invocation.CID, t invocation.Ticket, now time.Time) {
	a, e := k.asks(cid), k.kept[t.ID]
	inOrder := !now.Before(k.avoiding)
	view, rebinds := k.core.View(now), e.rebinds(a.busy)
	switch {
	case e == nil || e.cancelled || e.holder != "" && !rebinds:
		k.broken(t.ID, RuleOnlyWhatWaits)
		return
	case !t.Deadline.After(now):
		k.broken(t.ID, RuleNotTooLate)
	case a.credits <= 0:
		k.broken(t.ID, RuleNoMoreThanAsked)
	case inOrder && slices.ContainsFunc(k.asking, func(o asking) bool { return precedes(o.busy, o.cid, a.busy, cid) && o.credits > 0 }):
		k.broken(t.ID, RuleFirstOfThoseThatAsk)
	case inOrder && !rebinds && !k.newestFirst && !view.NewestFirst && now.Sub(t.Arrived) < view.OldestWait:
		k.broken(t.ID, RuleOldestFirst)
	}
	a.credits--
	a.idle = false
	e.holder, e.handed, e.rebound, e.awaitsCore = cid, now, rebinds, false
}

// mayLend looks whether an instance that keeps the place of a ticket is on a calm node, if one is.
func (k *tickets) mayLend(e *core.HandOut) {
	if e.Lent && k.asks(e.CID).busy && slices.ContainsFunc(k.asking, func(a asking) bool { return a.pulls && !a.busy }) {
		k.broken(e.Ticket.ID, RuleLendsOnCalmNodes)
	}
}

// rebinds tells whether a ticket that an instance holds may go to another one, too: once, from an
// instance that waits for a core, to a calm node. e may be nil.
func (e *kept) rebinds(busy bool) bool {
	return e != nil && e.holder != "" && !e.rebound && !busy && e.awaitsCore
}

// done notes that an instance has finished with a ticket.
func (k *tickets) done(cid invocation.CID, id invocation.ID) {
	if e, known := k.kept[id]; known && e.holder == cid {
		delete(k.kept, id)
	}
}

// givenBack notes that an instance could not reach a ticket's gateway.
func (k *tickets) givenBack(cid invocation.CID, id invocation.ID, now time.Time) {
	if e, known := k.kept[id]; known && e.holder == cid {
		k.avoiding = now.Add(core.GatewayCoolDown)
		k.putBack(id, e, e.cancelled)
	}
}

// left notes that an instance is gone. What it has held for long is claimed.
func (k *tickets) left(cid invocation.CID, now time.Time) {
	k.stops(cid)
	for id, e := range k.kept {
		if e.holder == cid {
			k.putBack(id, e, e.cancelled || e.overdue(now))
		}
	}
}

// mayLeave notes that an instance was allowed to leave. One that was retired may in any case.
func (k *tickets) mayLeave(cid invocation.CID, retired bool, now time.Time) {
	if k.holds(cid) > 0 {
		k.world.violate(RuleLeaverHoldsNothing, 0)
	}
	spec := k.core.Spec()
	if !retired && spec.KeepLast > spec.IdleTimeout && !slices.ContainsFunc(k.asking, func(a asking) bool { return a.cid != cid }) {
		k.world.violate(RuleLastStays, 0)
	}
	k.left(cid, now)
}

func (k *tickets) putBack(id invocation.ID, e *kept, over bool) {
	if e.holder = ""; over {
		delete(k.kept, id)
	}
}

// stops notes that an instance is to be handed nothing more.
func (k *tickets) stops(cid invocation.CID) {
	k.asking = slices.DeleteFunc(k.asking, func(a asking) bool { return a.cid == cid })
}

// audit compares what the queue has with what it must have. It must come before what a
// queue is told, since it finds out by that which tickets were too late.
func (k *tickets) audit(now time.Time) {
	view := k.core.View(now)
	k.newestFirst = view.NewestFirst
	has := k.core.Tickets() + view.Out
	if has == len(k.kept) {
		return
	}
	for id, e := range k.kept {
		if !k.core.IsWaiting(id) && e.holder == "" && !e.deadline.After(now) {
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

func (k *tickets) broken(id invocation.ID, rule Rule) {
	if in := k.world.truth.byID[id]; in != nil {
		k.world.truth.broken(in, rule)
	}
}
