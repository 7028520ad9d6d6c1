package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// The node agent of a busy node decides which calls compute (pkg/nodeagent/callorder). Whatever
// goes wrong with it, calls begin as if it were not there.
const (
	// nodePatience is how long a call waits at least for a core without any sign of the node agent,
	// which says every 100 ms that the call still waits, or as often as its welcome says. Two signs may be missing,
	// and come late by signSlack.
	nodePatience = 220 * time.Millisecond
	signSlack    = 20 * time.Millisecond
	// maxCoreWait bounds the wait of one call, with signs.
	maxCoreWait = 30 * time.Second
	// runShare is the part of its time that a call by a loan does not wait for a core: an eighth. A call
	// that begins with less mostly breaks off at its timeout, which costs the instance, and its client
	// cannot know whether it ran.
	runShare = 8
	// distrustFor is how long calls do not ask after the node agent gave no sign. Then one asks, and begins
	// without waiting for the answer, until there is a sign again; the next one after as long, then twice as long, up to
	// longestDistrust. What is sent to a node agent that does not read fills its stream, and then stops the agent.
	distrustFor     = time.Second
	longestDistrust = 32 * time.Second
)

// node is what the instance knows of its node agent. Only functions of concurrency 1 ask, so at
// most one call waits.
type node struct {
	// busy says that more want to run on the node than it has cores, asks that the node agent wants
	// calls of this instance to ask, and low that the instance gets only what others leave of the cores.
	busy, asks, low bool
	// heard is when the node agent gave a sign last, and distrusted until when it is not asked. silent says
	// that it has given no sign when a call waited for one. Then the next call after askAt asks it, and askPause is from
	// there to the next.
	heard, distrusted time.Time
	silent            bool
	askAt             time.Time
	askPause          time.Duration
	// stillEvery is how often the node agent gives a sign while a call waits, as it says.
	stillEvery time.Duration
	wait       wait
	lowness    lowness
}

// wait is that of a call for a core; zero if none waits.
type wait struct {
	attempt Attempt
	asked   time.Time
	// reported says that the scheduler has heard of the wait, and the gateway of a call that it has
	// handed over. reportAt is when the scheduler hears of it next.
	reported bool
	reportAt time.Time
}

// lowness is what the scheduler hears of a call that runs in the low band of a busy node.
type lowness struct {
	// reported says that it has heard that, and reportAt is when it does; zero if it need not.
	reported bool
	reportAt time.Time
}

// beginCall lets a call go on once it has a core: at once, unless the node agent has to be asked.
func (c *Core) beginCall(now time.Time, n Attempt, a *attempt) {
	if c.params.Concurrency != 1 || !c.node.asks || now.Before(c.node.distrusted) || c.node.silent && now.Before(c.node.askAt) {
		c.proceed(now, n, a)
		return
	}
	a.known = true
	if c.node.silent {
		c.node.askAt, c.node.askPause = now.Add(c.node.askPause), min(2*c.node.askPause, longestDistrust)
		c.emit(AskCore{n})
		c.proceed(now, n, a)
		return
	}
	a.phase = awaitingCore
	c.node.wait = wait{attempt: n, asked: now, reportAt: now.Add(invocation.LongCoreWait)}
	c.counts.CoreAsks++
	c.emit(AskCore{n})
}

// proceed claims the call of a ticket, and starts one that came by a loan, unless it has waited too long.
func (c *Core) proceed(now time.Time, n Attempt, a *attempt) {
	if a.late(now) {
		c.giveUp(now, n, a)
		return
	}
	if c.node.wait.attempt == n {
		if reported := c.endWait(now, a); reported {
			c.sendPull(now, 0)
			c.tellWait(n, a, false)
		}
	}
	if a.byLoan() {
		c.handToFunction(now, n, a)
		return
	}
	a.phase = claiming
	a.claimDeadline = now.Add(claimTimeout << min(c.calls.unanswered, claimDoublings))
	c.calls.claims = append(c.calls.claims, n)
	c.claimAt(now, n, a)
}

// handToFunction hands a call to the function.
func (c *Core) handToFunction(now time.Time, n Attempt, a *attempt) {
	a.phase = running
	c.emit(Start{n, a.coreWait})
	c.armLow(now)
}

// endWait ends the wait of a call, and reports whether the scheduler has heard of it.
func (c *Core) endWait(now time.Time, a *attempt) (reported bool) {
	ended := c.node.wait
	c.node.wait = wait{}
	a.coreWait = now.Sub(ended.asked)
	return ended.reported
}

// reportLongWait tells the scheduler that a call waits, and again when it has waited twice as long. A
// gateway that has handed it over remembers it.
func (c *Core) reportLongWait(now time.Time) {
	n, a := c.waitingForCore()
	if a == nil || now.Before(c.node.wait.reportAt) {
		return
	}
	if !c.node.wait.reported {
		c.tellWait(n, a, true)
	}
	c.node.wait.reported, c.node.wait.reportAt = true, now.Add(now.Sub(c.node.wait.asked))
	c.sendPull(now, 0)
}

// tellWait tells the gateway that has handed a call over whether it waits: another instance
// may have a core for it. A call of a ticket is not claimed yet, so that its gateway waits for
// a claim.
func (c *Core) tellWait(n Attempt, a *attempt, waits bool) {
	if a.byLoan() {
		c.emit(TellWait{n, waits})
	}
}

// apply lets go of a call that waits for a core, because its gateway has a place for it on a
// calm node. One that has begun goes on.
func (e GiveUp) apply(c *Core, now time.Time) {
	if a := c.calls.inPhase(awaitingCore, e.Attempt); a != nil && a.byLoan() {
		c.giveUp(now, e.Attempt, a)
	}
}

// longWait is the wait that the scheduler has heard of, or zero.
func (c *Core) longWait(now time.Time) LongWait {
	_, a := c.waitingForCore()
	if a == nil || !c.node.wait.reported {
		return LongWait{}
	}
	return LongWait{ID: a.id, Waited: now.Sub(c.node.wait.asked), ByLoan: a.byLoan()}
}

// waitingForCore is the call that waits for a core, or nil.
func (c *Core) waitingForCore() (Attempt, *attempt) {
	n := c.node.wait.attempt
	return n, c.calls.inPhase(awaitingCore, n)
}

// failOpen lets the waiting call begin without a core.
func (c *Core) failOpen(now time.Time) {
	if n, a := c.waitingForCore(); a != nil {
		c.counts.CoreTimeouts++
		c.proceed(now, n, a)
	}
}

// giveUp ends a call that waits for a core. It has not begun, so another instance can take it
// unless it has waited too long.
func (c *Core) giveUp(now time.Time, n Attempt, a *attempt) {
	reported := c.endWait(now, a)
	a.known = false
	c.emit(GiveUpCore{n})
	if !a.byLoan() {
		c.giveBack(now, n, a, Done{ID: a.id})
		return
	}
	c.endAttempt(now, n)
	keeps := c.leaveConn(now, a, true)
	c.emit(Deliver{n, keeps, a.late(now)})
	switch {
	case !keeps:
		c.sendPull(now, 1)
	case reported:
		c.sendPull(now, 0)
	}
}

// reportBusy tells the scheduler and gateways whether the node is busy, if that has changed: each of
// them prefers the instances of calm nodes.
func (c *Core) reportBusy(now time.Time, busy bool) {
	if c.node.busy == busy {
		return
	}
	c.node.busy = busy
	c.sendPull(now, 0)
	for _, n := range c.conns.numbers() {
		if c.conns.open(n) != nil {
			c.emit(TellNode{n, busy})
		}
	}
}

// noteSign notes a sign of the node agent. After a silence it does not know of a call that has not asked.
func (c *Core) noteSign(now time.Time) {
	again := c.node.silent
	c.node.heard, c.node.silent = now, false
	if again && c.node.asks {
		c.reportRunning()
	}
}

// patience is how long a call waits without a sign.
func (n *node) patience() time.Duration {
	return max(nodePatience, 2*min(n.stillEvery, maxCoreWait)+signSlack)
}

func (e NodeWelcome) apply(c *Core, now time.Time) {
	c.noteSign(now)
	c.node.stillEvery = e.StillEvery
}

func (e NodeMode) apply(c *Core, now time.Time) {
	c.noteSign(now)
	c.node.asks = e.Ask
	if !e.Busy { // in the low band, too, a call has all that it wants
		c.node.forgetLow()
	}
	c.reportBusy(now, e.Busy)
	c.armLow(now)
	if e.Ask {
		c.reportRunning()
	}
}

// reportRunning tells the node agent of a call that runs already: who computes without a
// ticket is slowed down.
func (c *Core) reportRunning() {
	for n, a := range c.calls.attempts {
		if a.phase == running && c.params.Concurrency == 1 && !a.known {
			a.known = true
			c.emit(ReportRunning{n})
		}
	}
}

func (e NodeGranted) apply(c *Core, now time.Time) {
	c.noteSign(now)
	if a := c.calls.inPhase(awaitingCore, e.Attempt); a != nil {
		c.proceed(now, e.Attempt, a)
	}
}

func (NodeStill) apply(c *Core, now time.Time) { c.noteSign(now) }

// An instance in the low band may be too slow for frequent pings, so it announces rare ones.
func (e NodeLow) apply(c *Core, now time.Time) {
	c.noteSign(now)
	if c.node.low == e.Low {
		return
	}
	c.node.low = e.Low
	c.reportPingEvery(now)
	if e.Low {
		c.armLow(now)
		return
	}
	c.reportNotLow(now)
}

// armLow lets the scheduler hear in a while that a call runs in the low band of a busy node. An
// instance of class Batch is always in that band.
func (c *Core) armLow(now time.Time) {
	if c.node.low && c.node.busy && c.node.lowness == (lowness{}) && c.calls.anyRuns() {
		c.node.lowness.reportAt = now.Add(invocation.LongCoreWait)
	}
}

// reportNotLow tells the scheduler that no call is low any more, if it has heard that one was.
func (c *Core) reportNotLow(now time.Time) {
	if c.node.forgetLow() {
		c.sendPull(now, 0)
	}
}

// forgetLow ends what the scheduler hears of the low band, and reports whether it has heard that a
// call is low. The next pull does not say so.
func (n *node) forgetLow() (reported bool) {
	reported = n.lowness.reported
	n.lowness = lowness{}
	return reported
}

// reportLow tells the scheduler that a call has long had only what others leave of the cores: more
// instances would not help it.
func (c *Core) reportLow(now time.Time) {
	if at := c.node.lowness.reportAt; at.IsZero() || now.Before(at) {
		return
	}
	c.node.lowness = lowness{reported: true}
	c.sendPull(now, 0)
}

func (NodeLost) apply(c *Core, now time.Time) {
	c.node.asks, c.node.low, c.node.silent = false, false, false
	c.reportNotLow(now)
	c.reportBusy(now, false)
	for _, a := range c.calls.attempts {
		a.known = false
	}
	c.failOpen(now)
}

// nodeNext is when nodeDue has something to do.
func (c *Core) nodeNext() time.Time {
	return earliest(c.impatientAt(), c.node.wait.reportAt, c.lateAt(), c.node.lowness.reportAt)
}

// lateAt is when the waiting call has waited too long; zero if none waits that has a bound.
func (c *Core) lateAt() time.Time {
	if _, a := c.waitingForCore(); a != nil {
		return a.beginBy
	}
	return time.Time{}
}

// impatientAt is when the waiting call begins without a core; zero if none waits.
func (c *Core) impatientAt() time.Time {
	if _, a := c.waitingForCore(); a == nil {
		return c.node.distrusted
	}
	sign := c.node.wait.asked
	if c.node.heard.After(sign) {
		sign = c.node.heard
	}
	return earliest(sign.Add(c.node.patience()), c.node.wait.asked.Add(maxCoreWait))
}

// nodeDue lets a call begin that has waited too long, or tells of its wait, and trusts the node
// agent again after a while. A call that must not begin any more ends.
func (c *Core) nodeDue(now time.Time) {
	if n, a := c.waitingForCore(); a != nil && a.late(now) {
		c.giveUp(now, n, a)
	}
	c.reportLongWait(now)
	c.reportLow(now)
	if at := c.impatientAt(); at.IsZero() || now.Before(at) {
		return
	}
	if _, a := c.waitingForCore(); a == nil {
		c.node.distrusted = time.Time{}
		if c.node.asks {
			c.reportRunning()
		}
		return
	}
	c.node.distrusted, c.node.silent = now.Add(distrustFor), true
	c.node.askAt, c.node.askPause = time.Time{}, distrustFor
	c.failOpen(now)
}
