package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// claimPatience is how long a gateway may take to answer a claim. One that is there
// needs a thousandth of it. It doubles with every claim in a row that was not answered,
// up to claimDoublings times: gateways that are slow because they are overloaded must
// not be asked for ever by instances that never wait for the answer.
const (
	claimPatience  = 500 * time.Millisecond
	claimDoublings = 3
)

// calls are the attempts of an instance.
type calls struct {
	attempts map[Attempt]*attempt
	last     Attempt
	// held is how many of them take up the function: they claim or run.
	held int
	// claims are those that were claimed, in order; some are answered.
	claims []Attempt
	// unanswered counts the claims in a row that were given up.
	unanswered int
}

type attemptPhase int

const (
	claiming attemptPhase = iota
	running
	// delivering: the function is free again.
	delivering
)

type attempt struct {
	phase attemptPhase
	id    invocation.ID
	// claimBy is when its claim is given up.
	claimBy time.Time
	// unwanted says that the client, or its gateway, broke off.
	unwanted bool
}

func newCalls() calls { return calls{attempts: make(map[Attempt]*attempt)} }

// take makes room for a ticket.
func (cs *calls) take(id invocation.ID) (Attempt, *attempt) {
	cs.last++
	a := &attempt{id: id}
	cs.attempts[cs.last] = a
	cs.held++
	return cs.last, a
}

// runs tells whether an invocation is here already.
func (cs *calls) runs(id invocation.ID) bool {
	for _, a := range cs.attempts {
		if a.id == id && a.phase != delivering {
			return true
		}
	}
	return false
}

// in is an attempt if it is in a phase, and nil otherwise.
func (cs *calls) in(phase attemptPhase, n Attempt) *attempt {
	if a := cs.attempts[n]; a != nil && a.phase == phase {
		return a
	}
	return nil
}

// answered is in for a claim that was answered.
func (cs *calls) answered(n Attempt) *attempt {
	a := cs.in(claiming, n)
	if a != nil {
		cs.unanswered = 0
	}
	return a
}

// free frees the function of an attempt; more says that something is still to come.
func (cs *calls) free(n Attempt, more bool) {
	cs.held--
	if more {
		cs.attempts[n].phase = delivering
		return
	}
	delete(cs.attempts, n)
}

// first is the oldest claim that was not answered; nil if there is none.
func (cs *calls) first() *attempt {
	for len(cs.claims) > 0 {
		if a := cs.in(claiming, cs.claims[0]); a != nil {
			return a
		}
		cs.claims = cs.claims[1:]
	}
	return nil
}

// next is when the oldest claim is given up; zero if there is none.
func (cs *calls) next() time.Time {
	if a := cs.first(); a != nil {
		return a.claimBy
	}
	return time.Time{}
}

// A Ticket is taken if the instance has room, and otherwise left to the one that gets it
// when the instance has left. An invocation that is here already is claimed even if
// it could be started, since the gateway tells which of the two is real.
func (t Ticket) heard(c *Core, now time.Time) {
	if c.life.leaving || !c.life.ready || c.calls.held >= c.params.Concurrency {
		return
	}
	start := t.Request && !c.calls.runs(t.Ticket.ID)
	n, a := c.calls.take(t.Ticket.ID)
	c.idle = idleness{}
	if start {
		a.phase = running
		c.do(Start{Attempt: n, Unclaimed: true, Ticket: t.Ticket})
		return
	}
	a.claimBy = now.Add(claimPatience << min(c.calls.unanswered, claimDoublings))
	c.calls.claims = append(c.calls.claims, n)
	c.do(Claim{n, t.Ticket})
}

func (g Granted) happen(c *Core, now time.Time) {
	a := c.calls.answered(g.Attempt)
	switch {
	case a == nil:
	case c.life.spent: // since the claim was made
		c.do(Release(g))
		c.giveBack(now, g.Attempt, Done{ID: a.id}, true)
	default:
		a.phase = running
		c.do(Start{Attempt: g.Attempt})
	}
}

func (r Refused) happen(c *Core, now time.Time) {
	if c.calls.in(running, r.Attempt) != nil { // it began before its claim
		c.counts.ClaimsRefused++
	}
	if a := c.calls.answered(r.Attempt); a != nil {
		c.counts.ClaimsRefused++
		c.giveBack(now, r.Attempt, Done{ID: a.id}, false)
	}
}

func (u Unreachable) happen(c *Core, now time.Time) {
	if a := c.calls.in(claiming, u.Attempt); a != nil {
		c.giveBack(now, u.Attempt, Done{ID: a.id, Unclaimed: true}, false)
	}
}

// claimsDue gives up the claims that were not answered in time. The gateway may have
// granted one and not be heard, so it has to know.
func (c *Core) claimsDue(now time.Time) {
	for a := c.calls.first(); a != nil && !now.Before(a.claimBy); a = c.calls.first() {
		n := c.calls.claims[0]
		c.calls.unanswered++
		c.do(Release{n})
		c.giveBack(now, n, Done{ID: a.id, Unclaimed: true}, true)
	}
}

func (e Cancelled) happen(c *Core, _ time.Time) {
	if a := c.calls.in(running, e.Attempt); a != nil {
		a.unwanted = true
		c.do(Cancel(e))
	}
}

func (e BodyCut) happen(c *Core, _ time.Time) { c.unwanted(e.Attempt) }

// A call whose gateway is lost goes on: to break it off would cost the instance, and
// what the function does may be of use even if nobody hears of it.
func (e GatewayLost) happen(c *Core, _ time.Time) { c.unwanted(e.Attempt) }

func (c *Core) unwanted(n Attempt) {
	if a := c.calls.in(running, n); a != nil {
		a.unwanted = true
	}
}

func (e CallEnded) happen(c *Core, now time.Time) {
	a := c.calls.in(running, e.Attempt)
	if a == nil {
		return
	}
	c.counts.ran(e.Outcome)
	done := Done{ID: a.id, Exec: e.Exec, Unclaimed: e.Unclaimed}
	switch {
	case e.Outcome == Complete:
	case e.Outcome == NotStarted && a.unwanted: // it was the client that broke off
		done.Exec = 0
	case e.Outcome == NotStarted:
		c.leave(now, ReasonFunctionEnded, e.Detail)
	default:
		c.leave(now, ReasonCallBroken, e.Detail)
	}
	c.giveBack(now, e.Attempt, done, true)
}

func (d Delivered) happen(c *Core, _ time.Time) {
	if c.calls.in(delivering, d.Attempt) != nil {
		delete(c.calls.attempts, d.Attempt)
	}
}

// giveBack ends what an attempt had of the function, and asks for the next.
func (c *Core) giveBack(now time.Time, n Attempt, done Done, more bool) {
	c.calls.free(n, more)
	if c.life.leaving {
		return
	}
	if c.calls.held == 0 {
		c.idle = idleness{since: now}
	}
	c.say(now, Pull{Credits: 1, Done: []Done{done}})
}

// ask asks for all that the instance can take.
func (c *Core) ask(now time.Time) {
	if c.life.ready && !c.life.leaving {
		c.say(now, Pull{Credits: c.params.Concurrency - c.calls.held})
	}
}
