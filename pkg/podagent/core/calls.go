package core

import (
	"slices"
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
	// lastRan is when a call ended last.
	lastRan time.Time
	// claims are the attempts that claimed, oldest first; some have their answer already.
	claims []Attempt
	// unanswered counts claims in a row without an answer.
	unanswered int
}

type attemptPhase int

const (
	claiming attemptPhase = iota
	running
	// awaitingCore waits for the node agent: a ticket that is not claimed yet, or a call that
	// came by a loan and has not begun.
	awaitingCore
)

type attempt struct {
	phase attemptPhase
	id    invocation.ID
	conn  Conn
	// ticket is the call's; nil if it came by a loan.
	ticket *invocation.Ticket
	// lent says that the ticket's place stays with the gateway.
	lent bool
	// sent says that the claim was sent, and claimDeadline is when the agent gives it up.
	sent          bool
	claimDeadline time.Time
	// unwanted says that the client or its gateway broke off the call.
	unwanted bool
	// known says that the node agent knows of it.
	known bool
	// coreWait is how long it waited for a core.
	coreWait time.Duration
	// beginBy is when a call by a loan must have begun; zero for no bound. The gateway starts the
	// time of a ticket's call with the claim.
	beginBy time.Time
}

// byLoan reports whether the call came without a ticket.
func (a *attempt) byLoan() bool { return a.ticket == nil }

// late reports whether the attempt must not begin any more.
func (a *attempt) late(now time.Time) bool { return !a.beginBy.IsZero() && !now.Before(a.beginBy) }

func newCalls() calls { return calls{attempts: make(map[Attempt]*attempt)} }

// addAttempt adds an attempt for a call of a gateway.
func (cs *calls) addAttempt(id invocation.ID, to Conn) (Attempt, *attempt) {
	cs.last++
	a := &attempt{id: id, conn: to}
	cs.attempts[cs.last] = a
	return cs.last, a
}

// held is how many attempts occupy the function.
func (cs *calls) held() int { return len(cs.attempts) }

// inPhase is an attempt if it is in a phase, and nil otherwise.
func (cs *calls) inPhase(phase attemptPhase, n Attempt) *attempt {
	if a := cs.attempts[n]; a != nil && a.phase == phase {
		return a
	}
	return nil
}

// anyRuns reports whether a call runs.
func (cs *calls) anyRuns() bool {
	for _, a := range cs.attempts {
		if a.phase == running {
			return true
		}
	}
	return false
}

// at are the attempts of a connection, in order.
func (cs *calls) at(to Conn) []Attempt {
	var at []Attempt
	for n, a := range cs.attempts {
		if a.conn == to {
			at = append(at, n)
		}
	}
	slices.Sort(at)
	return at
}

// claimAnswered is an attempt whose claim was sent and is answered now, or nil.
func (cs *calls) claimAnswered(n Attempt) *attempt {
	a := cs.inPhase(claiming, n)
	if a == nil || !a.sent {
		return nil
	}
	cs.unanswered = 0
	return a
}

// nextClaim is the unanswered claim that is cancelled first; nil if there is none. An older one may
// have more time.
func (cs *calls) nextClaim() (next Attempt, a *attempt) {
	cs.claims = slices.DeleteFunc(cs.claims, func(n Attempt) bool { return cs.inPhase(claiming, n) == nil })
	for _, n := range cs.claims {
		if other := cs.attempts[n]; a == nil || other.claimDeadline.Before(a.claimDeadline) {
			next, a = n, other
		}
	}
	return next, a
}

// nextClaimDeadline is when the next claim is cancelled; zero if no claim is open.
func (cs *calls) nextClaimDeadline() time.Time {
	if _, a := cs.nextClaim(); a != nil {
		return a.claimDeadline
	}
	return time.Time{}
}

// free is how many calls the instance can take more: the places that neither run a call nor are
// lent.
func (c *Core) free() int { return c.params.Concurrency - c.calls.held() - c.conns.idle }

// The instance takes a ticket if it has room, and otherwise leaves it to the next instance.
func (t Ticket) reply(c *Core, now time.Time) {
	if !c.life.takesCalls() || c.free() <= 0 {
		return
	}
	c.noteCall(now)
	n, a := c.calls.addAttempt(t.Ticket.ID, 0)
	a.lent, a.ticket = t.Lent, &t.Ticket
	if t.Lent || !c.node.busy { // on a busy node it may be for the sake of calm ones
		c.conns.lends = t.Lent
	}
	c.beginCall(now, n, a)
}

func (g Granted) apply(c *Core, now time.Time) {
	n := g.Attempt
	a := c.calls.claimAnswered(n)
	if a == nil {
		return
	}
	if at := c.conns.all[a.conn]; at != nil {
		at.granted = true
	}
	switch {
	case c.life.unusable: // since the claim was made
		c.emit(Release{n})
		c.giveBack(now, n, a, Done{ID: a.id})
	default:
		c.handToFunction(now, n, a)
	}
}

func (r Refused) apply(c *Core, now time.Time) {
	if a := c.calls.claimAnswered(r.Attempt); a != nil {
		c.counts.ClaimsRefused++
		c.giveBack(now, r.Attempt, a, Done{ID: a.id})
	}
}

// connOfAttemptLost is the end of the connection that an attempt uses.
func (c *Core) connOfAttemptLost(now time.Time, n Attempt) {
	switch a := c.calls.attempts[n]; a.phase {
	case claiming:
		c.giveBack(now, n, a, Done{ID: a.id, Unclaimed: true})
	case running:
		a.unwanted = true
	case awaitingCore:
		c.giveUp(now, n, a)
	}
}

// claimsDue releases the claims that were not answered in time. The gateway may have granted
// one in a message that was lost, so it has to be informed.
func (c *Core) claimsDue(now time.Time) {
	for n, a := c.calls.nextClaim(); a != nil && !now.Before(a.claimDeadline); n, a = c.calls.nextClaim() {
		c.calls.unanswered++
		if a.sent {
			c.emit(Release{n})
		}
		c.giveBack(now, n, a, Done{ID: a.id, Unclaimed: true})
	}
}

func (e Cancelled) apply(c *Core, now time.Time) {
	n := e.Attempt
	switch a := c.calls.attempts[n]; {
	case a == nil:
	case a.phase == awaitingCore:
		c.giveUp(now, n, a)
	case a.phase == running:
		a.unwanted = true
		c.emit(Cancel{n})
	}
}

func (e BodyCut) apply(c *Core, now time.Time) {
	switch a := c.calls.attempts[e.Attempt]; {
	case a == nil:
	case a.phase == awaitingCore:
		c.giveUp(now, e.Attempt, a)
	case a.phase == running:
		a.unwanted = true
	}
}

// apply decides what the gateway gets, and whether the call's place stays with it. The
// answer's last frame says so, so that no call by that credit can come before the core knows.
func (e CallEnded) apply(c *Core, now time.Time) {
	a := c.calls.inPhase(running, e.Attempt)
	if a == nil {
		return
	}
	c.counts.ran(e.Outcome)
	done := Done{ID: a.id, Exec: e.Exec, CoreWait: invocation.ShortCoreWait(a.coreWait)}
	switch {
	case e.Outcome == Complete:
	case e.Outcome == Untouched, e.Outcome == NotStarted && a.unwanted: // then it was the client that broke off
		done.Exec = 0
	case e.Outcome == NotStarted:
		c.drain(now, ReasonFunctionEnded, e.Detail)
	default:
		c.drain(now, ReasonCallBroken, e.Detail)
	}
	c.calls.lastRan = now
	wasLow := c.node.lowness.reported
	c.endAttempt(now, e.Attempt)
	keeps := c.leaveConn(now, a, a.lent || a.byLoan())
	c.emit(Deliver{Attempt: e.Attempt, Keeps: keeps})
	switch {
	case !a.byLoan() && keeps:
		c.sendPull(now, 0, done)
	case !a.byLoan():
		c.sendPull(now, 1, done)
	case !keeps:
		c.sendPull(now, 1)
	case wasLow && !c.node.lowness.reported:
		c.sendPull(now, 0)
	}
}

// endAttempt frees the place of an attempt.
func (c *Core) endAttempt(now time.Time, n Attempt) {
	if a := c.calls.attempts[n]; a.known {
		c.emit(EndCore{Refused: a.phase != running})
	}
	delete(c.calls.attempts, n)
	if !c.calls.anyRuns() {
		c.node.forgetLow()
	}
	if c.calls.held() == 0 && !c.life.draining {
		c.idle = idleness{since: now}
	}
}

// giveBack ends an attempt that did not run, and asks for the next.
func (c *Core) giveBack(now time.Time, n Attempt, a *attempt, done Done) {
	c.endAttempt(now, n)
	c.leaveConn(now, a, false)
	done.CoreWait = invocation.ShortCoreWait(a.coreWait)
	c.sendPull(now, 1, done)
}

// sendPull asks for tickets, and says what is lent. It sends nothing while the instance takes no
// calls, nor while gateways share the places: a scheduler that answers ends that first.
func (c *Core) sendPull(now time.Time, credits int, done ...Done) {
	if !c.life.takesCalls() || c.conns.shared {
		return
	}
	p := Pull{Credits: credits, Done: done, Loans: c.conns.loans(), NodeBusy: c.node.busy, LongWait: c.longWait(now), Low: c.node.lowness.reported}
	switch {
	case len(p.Loans) == 0:
		c.idle.reported = false
	case c.idle.reported:
		p.Idle = now.Sub(c.idle.since)
	}
	c.send(now, p)
}
