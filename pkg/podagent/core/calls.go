package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// claimTimeout bounds a gateway's answer to a claim. A healthy gateway needs a thousandth of
// it. It doubles with every unanswered claim in a row, up to claimDoublings times: an
// overloaded gateway must not get claims forever from instances that never wait for the
// answer.
const (
	claimTimeout   = 500 * time.Millisecond
	claimDoublings = 3
)

// calls are the attempts of an instance.
type calls struct {
	attempts map[Attempt]*attempt
	last     Attempt
	// held counts the attempts that occupy the function: they claim or run.
	held int
	// claims are the attempts that claimed, oldest first; some have their answer already.
	claims []Attempt
	// unanswered counts claims in a row without an answer.
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
	// claimDeadline is when the agent cancels the claim.
	claimDeadline time.Time
	// unwanted says that the client or its gateway broke off the call.
	unwanted bool
}

func newCalls() calls { return calls{attempts: make(map[Attempt]*attempt)} }

// addAttempt adds an attempt for a ticket.
func (cs *calls) addAttempt(id invocation.ID) (Attempt, *attempt) {
	cs.last++
	a := &attempt{id: id}
	cs.attempts[cs.last] = a
	cs.held++
	return cs.last, a
}

// has reports whether the instance has an invocation already.
func (cs *calls) has(id invocation.ID) bool {
	for _, a := range cs.attempts {
		if a.id == id && a.phase != delivering {
			return true
		}
	}
	return false
}

// inPhase is an attempt if it is in a phase, and nil otherwise.
func (cs *calls) inPhase(phase attemptPhase, n Attempt) *attempt {
	if a := cs.attempts[n]; a != nil && a.phase == phase {
		return a
	}
	return nil
}

// claimAnswered is in for a claim that was answered.
func (cs *calls) claimAnswered(n Attempt) *attempt {
	a := cs.inPhase(claiming, n)
	if a != nil {
		cs.unanswered = 0
	}
	return a
}

// freeFunction frees the function of an attempt; more says that something is still to come.
func (cs *calls) freeFunction(n Attempt, more bool) {
	cs.held--
	if more {
		cs.attempts[n].phase = delivering
		return
	}
	delete(cs.attempts, n)
}

// oldestClaim is the oldest unanswered claim, or nil.
func (cs *calls) oldestClaim() *attempt {
	for len(cs.claims) > 0 {
		if a := cs.inPhase(claiming, cs.claims[0]); a != nil {
			return a
		}
		cs.claims = cs.claims[1:]
	}
	return nil
}

// nextClaimDeadline is when the oldest claim is cancelled; zero if no claim is open.
func (cs *calls) nextClaimDeadline() time.Time {
	if a := cs.oldestClaim(); a != nil {
		return a.claimDeadline
	}
	return time.Time{}
}

// The instance takes a ticket if it has room, and otherwise leaves it to the next instance. It
// claims an invocation that it already has even if it could start it at once, because the
// gateway knows which of the two attempts counts.
func onTicket(c *Core, now time.Time, t Ticket) {
	if c.life.draining || !c.life.ready || c.calls.held >= c.params.Concurrency {
		return
	}
	start := t.Request && !c.calls.has(t.Ticket.ID)
	n, a := c.calls.addAttempt(t.Ticket.ID)
	c.idle = idleness{}
	if start {
		a.phase = running
		c.emit(Start{Attempt: n, Unclaimed: true, Ticket: t.Ticket})
		return
	}
	a.claimDeadline = now.Add(claimTimeout << min(c.calls.unanswered, claimDoublings))
	c.calls.claims = append(c.calls.claims, n)
	c.emit(Claim{n, t.Ticket})
}

func onGranted(c *Core, now time.Time, g Granted) {
	a := c.calls.claimAnswered(g.Attempt)
	switch {
	case a == nil:
	case c.life.unusable: // since the claim was made
		c.emit(Release(g))
		c.giveBack(now, g.Attempt, Done{ID: a.id}, true)
	default:
		a.phase = running
		c.emit(Start{Attempt: g.Attempt})
	}
}

func onRefused(c *Core, now time.Time, r Refused) {
	if c.calls.inPhase(running, r.Attempt) != nil { // it began before its claim
		c.counts.ClaimsRefused++
	}
	if a := c.calls.claimAnswered(r.Attempt); a != nil {
		c.counts.ClaimsRefused++
		c.giveBack(now, r.Attempt, Done{ID: a.id}, false)
	}
}

func onUnreachable(c *Core, now time.Time, u Unreachable) {
	if a := c.calls.inPhase(claiming, u.Attempt); a != nil {
		c.giveBack(now, u.Attempt, Done{ID: a.id, Unclaimed: true}, false)
	}
}

// claimsDue releases the claims that were not answered in time. The gateway may have granted
// one in a message that was lost, so it has to be informed.
func (c *Core) claimsDue(now time.Time) {
	for a := c.calls.oldestClaim(); a != nil && !now.Before(a.claimDeadline); a = c.calls.oldestClaim() {
		n := c.calls.claims[0]
		c.calls.unanswered++
		c.emit(Release{n})
		c.giveBack(now, n, Done{ID: a.id, Unclaimed: true}, true)
	}
}

func onCancelled(c *Core, e Cancelled) {
	if a := c.calls.inPhase(running, e.Attempt); a != nil {
		a.unwanted = true
		c.emit(Cancel(e))
	}
}

func onBodyCut(c *Core, e BodyCut) { c.unwanted(e.Attempt) }

// A call whose gateway is lost goes on: to break it off would cost the instance, and
// what the function does may be of use even without its answer.
func onGatewayLost(c *Core, e GatewayLost) { c.unwanted(e.Attempt) }

func (c *Core) unwanted(n Attempt) {
	if a := c.calls.inPhase(running, n); a != nil {
		a.unwanted = true
	}
}

func onCallEnded(c *Core, now time.Time, e CallEnded) {
	a := c.calls.inPhase(running, e.Attempt)
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
		c.drain(now, ReasonFunctionEnded, e.Detail)
	default:
		c.drain(now, ReasonCallBroken, e.Detail)
	}
	c.giveBack(now, e.Attempt, done, true)
}

func onDelivered(c *Core, d Delivered) {
	if c.calls.inPhase(delivering, d.Attempt) != nil {
		delete(c.calls.attempts, d.Attempt)
	}
}

// giveBack ends what an attempt had of the function, and asks for the next.
func (c *Core) giveBack(now time.Time, n Attempt, done Done, more bool) {
	c.calls.freeFunction(n, more)
	if c.life.draining {
		return
	}
	if c.calls.held == 0 {
		c.idle = idleness{since: now}
	}
	c.send(now, Pull{Credits: 1, Done: []Done{done}})
}

// sendPull asks for all that the instance can take.
func (c *Core) sendPull(now time.Time) {
	if c.life.ready && !c.life.draining {
		c.send(now, Pull{Credits: c.params.Concurrency - c.calls.held})
	}
}
