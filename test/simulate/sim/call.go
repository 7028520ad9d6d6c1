package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// agentAttempt is what an agent has of one call: its claim, and then the call.
type agentAttempt struct {
	agent *agent
	name  core.Attempt
	id    invocation.ID
	conn  *gatewayConn
	// number is that on the connection: odd for a claim, even for a call by a credit.
	number int
	// lent says that the ticket's place is to stay with the gateway.
	lent bool
	// cancelled says that nobody waits for the call any more.
	cancelled bool
	granted   callFrame
	// came is when a call by a credit has come.
	came time.Time
	// waitsLong says that its gateway has heard that it waits for a core, and said that it ever did.
	waitsLong, said bool
	// started says that the core has handed it to the function, and over that this has ended.
	started, over bool
	// run is the execution; 0 before there is one.
	run     int
	outcome core.Outcome
	exec    time.Duration
	// coreWait is how long it waited for a core.
	coreWait time.Duration
}

// attemptOf is the attempt of a name; nil if it is over.
func (a *agent) attemptOf(name core.Attempt) *agentAttempt {
	for _, t := range a.attempts {
		if t.name == name {
			return t
		}
	}
	return nil
}

// forget drops an attempt that is over.
func (a *agent) forget(t *agentAttempt) {
	a.attempts = slices.DeleteFunc(a.attempts, func(other *agentAttempt) bool { return other == t })
}

// claim asks the ticket's gateway for the call.
func (a *agent) claim(e core.Claim) {
	c := a.connOf(e.Conn)
	delete(a.unclaimed, e.Ticket.ID)
	t := &agentAttempt{agent: a, name: e.Attempt, id: e.Ticket.ID, conn: c, number: 2*c.claims + 1, lent: a.lends[e.Ticket.ID]}
	c.claims++
	a.attempts = append(a.attempts, t)
	c.send(claimFrame{call: t.number, id: t.id, token: e.Ticket.Token})
}

// release gives a claim back that was or may be granted.
func (a *agent) release(name core.Attempt) {
	if t := a.attemptOf(name); t != nil {
		a.forget(t)
		t.conn.send(releaseFrame{call: t.number})
	}
}

// accepted takes a call that came by a loan. It has not begun until startCall.
func (a *agent) accepted(e core.Accept) {
	c := a.connOf(e.Conn)
	call := c.calls[e.Call]
	a.attempts = append(a.attempts, &agentAttempt{
		agent: a, name: e.Attempt, id: call.id, conn: c, number: call.call, granted: call, came: a.now(), lent: true, outcome: core.NotStarted,
	})
}

// startCall hands the call to the function.
func (a *agent) startCall(e core.Start) {
	t := a.attemptOf(e.Attempt)
	if t == nil { // it was refused, or given back
		a.world.violate(RuleOwnAttempt, 0)
		return
	}
	t.started, t.coreWait = true, e.CoreWait
	a.mayBegin(t)
	w := a.world
	in := w.truth.byID[t.id]
	kind := fate(w)
	if w.poisoned == in.fn.function {
		kind = fateKills
	}
	if kind != fateFine {
		in.unlucky = true
	}
	if kind == fateNotStarted {
		w.at(time.Millisecond, func() { a.node.do(a.life, true, func() { t.end(core.NotStarted) }) })
		return
	}
	t.run = w.truth.start(in, t.granted.attempt, a.instance.cid)
	length := in.fn.typical/2 + w.between(0, in.fn.typical)
	switch kind {
	case fateFine:
		a.after(length, func() { t.end(core.Complete) })
	case fateKills:
		a.after(length, func() { w.at(0, func() { w.chaos.killPod(a.instance, false) }) })
	case fateDies:
		a.after(length, func() { t.end(core.Broken) })
	}
	left := t.granted.remain
	if !t.came.IsZero() {
		left -= a.now().Sub(t.came)
	}
	if t.coreWait > 0 && left < length { // its wait for a core has left it too little
		in.unlucky = true
	}
	a.after(max(0, left), func() { t.end(core.Broken) })
}

// fates of a call.
type callFate int

const (
	fateFine callFate = iota
	fateHangs
	fateDies
	fateNotStarted
	// fateKills ends the instance.
	fateKills
)

func fate(w *World) callFate {
	if w.calm {
		return fateFine
	}
	switch x := w.rng.Float64(); {
	case x < 0.01:
		return fateHangs
	case x < 0.02:
		return fateDies
	case x < 0.03:
		return fateNotStarted
	}
	return fateFine
}

// cancelCall lets the function see that nobody waits.
func (a *agent) cancelCall(name core.Attempt) {
	t := a.attemptOf(name)
	if t == nil || t.over {
		return
	}
	outcome := core.Broken
	switch x := a.world.rng.Float64(); {
	case x < 0.3: // the function does not look
		return
	case x < 0.8:
		outcome = core.Complete
	}
	a.after(a.world.between(time.Millisecond, 50*time.Millisecond), func() { t.end(outcome) })
}

// end is the end of a call. What the gateway gets of it is for the core to say.
func (t *agentAttempt) end(outcome core.Outcome) {
	if t.over {
		return
	}
	t.over, t.outcome = true, outcome
	a := t.agent
	// The function of a call that was broken off has not refused it.
	if outcome == core.Broken || outcome == core.NotStarted && !t.cancelled && !t.conn.lost {
		a.spent, a.instance.fn.broke = true, a.world.now
	}
	if outcome == core.Complete {
		a.world.truth.finish(t.run)
		t.exec = a.instance.fn.typical
	}
	a.step(core.CallEnded{Attempt: t.name, Outcome: outcome, Exec: t.exec})
}

// deliver sends what the gateway gets of a call that has ended.
func (a *agent) deliver(e core.Deliver) {
	t := a.attemptOf(e.Attempt)
	a.mayKeep(t, e.Keeps)
	a.forget(t)
	if t.conn.lost {
		return
	}
	if e.Keeps {
		t.conn.credits++
	}
	switch {
	case e.Late:
		t.conn.send(answerFrame{call: t.number, tooLate: true, keeps: e.Keeps})
	case t.outcome == core.Complete:
		t.conn.send(answerFrame{call: t.number, run: t.run, exec: t.exec, coreWait: t.coreWait, keeps: e.Keeps})
	case t.outcome == core.NotStarted:
		t.conn.send(releaseFrame{call: t.number, keeps: e.Keeps})
	default:
		t.conn.send(answerFrame{call: t.number, lost: a.world.chance(0.5), keeps: e.Keeps})
	}
}
