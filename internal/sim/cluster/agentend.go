package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	agent "github.com/windlass-dev/windlass/pkg/podagent/core"
)

// agentEnd is the shell of an instance's agent in virtual time. The agent's core decides which
// calls it takes, what it lends and takes back, and when it asks to leave.
type agentEnd struct {
	*lending
	in          *instance
	core        *agent.Core
	session     agent.Session
	connections map[agent.Conn]*connection
	// calls are those that were granted or have begun, by attempt, and coming is the one that
	// comes by a loan in this step.
	calls  map[agent.Attempt]*call
	coming *call
	// wake is the time of the one timer. draining says that it takes no calls any more, and
	// ended that it is gone.
	wake            time.Duration
	draining, ended bool
}

func newAgentEnd(l *lending, in *instance) *agentEnd {
	class := in.function.class
	return &agentEnd{
		lending: l, in: in, connections: make(map[agent.Conn]*connection), calls: make(map[agent.Attempt]*call),
		core: agent.New(agent.Params{
			Concurrency: class.Concurrency, BackoffAfter: class.BackoffAfter, IdleTimeout: class.IdleTimeout, Jitter: in.jitter,
		}),
	}
}

// feed brings an event to the agent's core, and carries out what follows.
func (a *agentEnd) feed(e agent.Event) {
	if a.ended {
		return
	}
	for _, effect := range a.core.Step(instant(a.now), e) {
		if a.execute(effect); a.ended {
			return
		}
	}
}

// hear brings a message of the scheduler.
func (a *agentEnd) hear(what agent.Reply) { a.feed(agent.Received{Session: a.session, Reply: what}) }

// agentWakes is when an agent's timer fires, unless it was set again since.
type agentWakes agentEnd

func (e *agentWakes) run(w *world) {
	if a := (*agentEnd)(e); a.wake == w.now {
		a.wake = -1
		a.feed(agent.Wake{})
	}
}

// called is a call that a gateway hands over by a loan. Who is gone declines it.
func (a *agentEnd) called(by *connection, e agent.Called) {
	if a.ended {
		a.send(func() { by.declined(e.Call) })
		return
	}
	a.coming = by.handed[e.Call]
	a.feed(e)
	a.coming = nil
}

// granted is a call that this instance has claimed.
func (a *agentEnd) granted(c *call, attempt agent.Attempt) {
	a.calls[attempt] = c
	a.feed(agent.Granted{Attempt: attempt})
}

// execute executes an effect of the agent's core. Messages take effect when they arrive.
func (a *agentEnd) execute(e agent.Effect) {
	switch e := e.(type) {
	case agent.Dial:
		a.session = e.Session
		a.send(func() { a.feed(agent.Opened{Session: e.Session}) })
	case agent.Send:
		a.tellScheduler(e.Message)
	case agent.Connect:
		a.connect(e)
	case agent.Disconnect:
		n := a.connections[e.Conn]
		delete(a.connections, e.Conn)
		a.send(func() {
			n.closed()
			a.send(func() { a.feed(agent.ConnLost(e)) })
		})
	case agent.Claim:
		n := a.connections[e.Conn]
		a.send(func() { n.claim(e) })
	case agent.Accept:
		a.calls[e.Attempt] = a.coming
		delete(a.connections[e.Conn].handed, e.Call)
	case agent.Start:
		a.start(e)
	case agent.Deliver:
		c := a.calls[e.Attempt]
		delete(a.calls, e.Attempt)
		a.send(func() { c.place.by.delivered(c, e.Keeps) })
	case agent.Decline:
		n := a.connections[e.Conn]
		a.send(func() { n.declined(e.Call) })
	case agent.Lend:
		n := a.connections[e.Conn]
		a.send(func() { n.lend(e.Credits) })
	case agent.TellNode:
		n := a.connections[e.Conn]
		a.send(func() { n.SetBusy(n.lender, e.Busy) })
	case agent.TakeBack:
		n := a.connections[e.Conn]
		a.send(func() { n.lend(-e.Credits) })
	case agent.WakeAt:
		a.wake = max(a.now, e.Time.Sub(epoch))
		a.agenda.plan(a.wake, (*agentWakes)(a))
	case agent.Draining:
		a.draining = true
	case agent.Drained:
		a.leaves()
	case agent.AskCore:
		a.machines[a.in.node].tickets.askFor(a.world, a.in.computer, func(*world) { a.feed(agent.NodeGranted(e)) })
	case agent.GiveUpCore:
		a.machines[a.in.node].tickets.gaveUp(a.world, a.in.computer)
	case agent.EndCore:
		a.machines[a.in.node].tickets.callOver(a.world, a.in.computer, e.Refused)
	case agent.ReportRunning: // all calls ask
	case agent.TellWait: // its gateways move no calls between nodes
	case agent.Quiet, agent.RunAudit, agent.HangUp, agent.End: // nothing to give back, nothing is lost
	default:
		panic(fmt.Sprintf("cluster: no rule for the effect %T", e))
	}
}

// tellScheduler sends a message to the scheduler.
func (a *agentEnd) tellScheduler(m agent.Message) {
	switch m := m.(type) {
	case agent.Hello:
		a.sendToScheduler(func() { a.join(a.in) })
	case agent.Pull:
		a.sendToScheduler(func() { a.pull(a.in, m) })
	case agent.LeaveRequest:
		a.sendToScheduler(func() { a.leaveAsked(a.in, m.Idle) })
	case agent.Ping:
		a.send(func() { a.tell(a.in.function, a.in.cid, agent.Pong{}) })
	case agent.Goodbye: // its end follows
	default:
		panic(fmt.Sprintf("cluster: no rule for the message %T", m))
	}
}

// connect connects to a gateway.
func (a *agentEnd) connect(e agent.Connect) {
	n := newConnection(a.byName[e.Addr].poolOf(a.in.function), a.in, e.Conn)
	a.connections[e.Conn] = n
	a.send(func() { a.send(func() { a.feed(agent.ConnOpened{Conn: e.Conn}) }) })
}

// start begins a call.
func (a *agentEnd) start(e agent.Start) {
	c := a.calls[e.Attempt]
	c.place.attempt, c.coreWait = e.Attempt, e.CoreWait
	in := a.in
	in.held++
	if in.phase == idle {
		a.enter(in, busy)
	}
	a.after(a.world.config.Overheads.Claim, (*callBegun)(c))
}

// leaves is the end of the instance: nothing runs any more, and all loans were taken back.
func (a *agentEnd) leaves() {
	a.ended = true
	for _, number := range slices.Sorted(maps.Keys(a.connections)) {
		a.send(a.connections[number].closed)
	}
	a.sendToScheduler(func() { a.gone(a.in) })
}
