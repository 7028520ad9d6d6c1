package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// agentAttempt is what an agent has of one ticket: its claim, and the call.
type agentAttempt struct {
	agent  *agent
	name   core.Attempt
	ticket invocation.Ticket
	stream *stream
	// connected says that the stream is open, and lost that it was.
	connected, lost bool
	// cancelled says that nobody waits for the call any more.
	cancelled bool
	// unclaimed says that the call was started without a claim.
	unclaimed bool
	granted   granted
	answered  bool // the claim was
	// run is the execution; 0 before there is one. Over says that it ended.
	run  int
	over bool
	// say is what is sent when the stream opens.
	say []any
	// delivered says that the core knows that nothing more will come, and refused that
	// there is no call.
	delivered, ended, refused bool
}

// claim asks the ticket's gateway for the call.
func (a *agent) claim(e core.Claim) {
	t := &agentAttempt{agent: a, name: e.Attempt, ticket: e.Ticket}
	a.attempts[e.Attempt] = t
	t.send(claim{id: t.ticket.ID, token: t.ticket.Token, cid: a.instance.cid})
	t.connect()
}

func (t *agentAttempt) connect() {
	t.stream = t.agent.dial(t.agent.world.nodeOf(t.ticket.Gateway), openAttempt{}, t)
}

// send sends to the gateway, as soon as there is a stream.
func (t *agentAttempt) send(m any) {
	if t.connected {
		t.stream.send(t.agent.node, m)
		return
	}
	t.say = append(t.say, m)
}

func (t *agentAttempt) opened() {
	t.connected = true
	for _, m := range t.say {
		t.stream.send(t.agent.node, m)
	}
	t.say = nil
}

func (t *agentAttempt) take(m any) {
	a := t.agent
	switch m := m.(type) {
	case granted:
		t.granted, t.answered = m, true
		if !t.unclaimed {
			a.step(core.Granted{Attempt: t.name})
		}
	case claimRefused:
		t.answered, t.ended, t.refused = true, t.ended || !t.unclaimed, !t.unclaimed
		a.step(core.Refused{Attempt: t.name})
		if t.unclaimed && !t.ended {
			// The call goes on, and nobody wants its result.
			t.lost = true
			return
		}
		t.deliver()
	case cancel:
		t.cancelled = true
		a.step(core.Cancelled{Attempt: t.name})
	}
}

// closed is the end of the stream: the gateway has all, or is gone.
func (t *agentAttempt) closed(closing) {
	t.lost, t.connected = true, false
	switch {
	case t.run > 0 && !t.over:
		t.agent.step(core.GatewayLost{Attempt: t.name})
	case !t.unclaimed && !t.answered && t.run == 0 && !t.ended:
		t.ended = true
		t.agent.step(core.Unreachable{Attempt: t.name})
	}
	if t.ended {
		t.deliver()
	}
}

func (t *agentAttempt) deliver() {
	if !t.delivered {
		t.delivered = true
		t.agent.step(core.Delivered{Attempt: t.name})
	}
	delete(t.agent.attempts, t.name)
}

// release gives a call back that was or may be granted.
func (a *agent) release(name core.Attempt) {
	t := a.attempts[name]
	if t == nil {
		return
	}
	t.ended = true
	if t.lost {
		a.world.at(0, func() { a.node.do(a.life, true, t.deliver) })
		return
	}
	t.send(release{})
	t.farewell()
}

// farewell bounds how long the gateway's end is waited for.
func (t *agentAttempt) farewell() {
	t.agent.after(2*time.Second, func() {
		if !t.delivered {
			t.stream.close(t.agent.node)
			t.deliver()
		}
	})
}

// startCall hands the call to the function.
func (a *agent) startCall(e core.Start) {
	t := a.attempts[e.Attempt]
	if e.Unclaimed {
		t = &agentAttempt{agent: a, name: e.Attempt, ticket: e.Ticket, unclaimed: true}
		a.attempts[e.Attempt] = t
		t.send(claim{id: t.ticket.ID, token: t.ticket.Token, cid: a.instance.cid, started: true})
		t.granted.remain = a.instance.fn.timeout
		t.connect()
	}
	w := a.world
	in := w.truth.byID[t.ticket.ID]
	kind := fate(w)
	if w.poisoned == in.fn.function {
		kind = fateKills
	}
	if kind == fateNotStarted {
		a.world.at(time.Millisecond, func() { a.node.do(a.life, true, func() { t.end(core.NotStarted) }) })
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
	a.after(t.granted.remain, func() { t.end(core.Broken) })
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
	t := a.attempts[name]
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

// end is the end of a call.
func (t *agentAttempt) end(outcome core.Outcome) {
	if t.over {
		return
	}
	t.over, t.ended = true, true
	a := t.agent
	// The function of a call that was broken off has not refused it.
	a.spent = a.spent || outcome == core.Broken || outcome == core.NotStarted && !t.cancelled
	exec := time.Duration(0)
	switch outcome {
	case core.Complete:
		a.world.truth.finish(t.run)
		t.send(result{run: t.run})
		exec = a.instance.fn.typical
	case core.NotStarted:
		t.send(release{})
	default:
		t.send(result{})
	}
	unreached := t.unclaimed && !t.answered && !t.connected
	a.step(core.CallEnded{Attempt: t.name, Outcome: outcome, Exec: exec, Unclaimed: unreached})
	switch {
	case t.delivered:
	case t.lost:
		t.deliver()
	default:
		t.farewell()
	}
}
