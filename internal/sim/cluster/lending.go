package cluster

import (
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	agent "github.com/windlass-dev/windlass/pkg/podagent/core"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// lending is the policy of Windlass with gateways: a call comes to one of them, and waits there
// for a lent pull or for an instance with its ticket. All rules are those of the three cores,
// which run side by side: gateways' (package gateway/core), the scheduler's and agents' (package
// podagent/core). They know of each other only what messages say.
type lending struct {
	*scheduler
	gateways []*gatewayEnd
	byName   map[string]*gatewayEnd
	// lots say to which gateway each call comes.
	lots *rand.Rand
	// underWay is how many messages are.
	underWay int
}

// gatewayStream is the stream of chance for gateways: far from those that are counted, so that
// gateways change nothing about the calls.
const gatewayStream = 1 << 32

func newLending(s *scheduler) *lending {
	config := &s.world.config
	l := &lending{scheduler: s, byName: make(map[string]*gatewayEnd), lots: rand.New(rand.NewPCG(config.Seed, gatewayStream))}
	for i := range config.Gateways {
		g := newGatewayEnd(l, i)
		l.gateways = append(l.gateways, g)
		l.byName[g.name] = g
	}
	return l
}

// message is something that happens when a message arrives.
type message func()

func (m message) run(*world) { m() }

// send lets something happen when a message arrives. As all take the same time, they arrive in
// the order in which they were sent.
func (l *lending) send(arrives func()) {
	l.underWay++
	l.agenda.plan(l.now+l.world.config.MessageDelay, message(func() {
		l.underWay--
		arrives()
	}))
}

// sendToScheduler is send for a message to the scheduler.
func (l *lending) sendToScheduler(arrives func()) {
	l.send(func() {
		arrives()
		l.settle()
	})
}

// deadline is until when a call's caller waits.
func (l *lending) deadline(c *call) time.Duration {
	if patience := c.function.class.Patience; patience > 0 {
		return c.admitted + patience
	}
	return forever
}

func (l *lending) enterQueue(c *call) {
	c.admitted = l.now
	if c.function.class.Patience > 0 {
		l.agenda.plan(l.deadline(c), (*callGivenUp)(c))
	}
	l.gateways[l.lots.IntN(len(l.gateways))].receive(c)
}

func (l *lending) forget(c *call) {
	if c.place != nil {
		c.place.pool.forget(c)
	}
}

func (l *lending) nowReady(in *instance) {
	in.agent = newAgentEnd(l, in)
	in.agent.feed(agent.Begin{})
	in.agent.feed(agent.FunctionReady{})
	if in.computer != nil {
		in.agent.feed(agent.NodeMode{Busy: true, Ask: true})
	}
}

func (l *lending) freed(in *instance, c *call) {
	in.agent.feed(agent.CallEnded{Attempt: c.place.attempt, Outcome: agent.Complete, Exec: c.took})
}

// leave is never needed: agents ask by themselves.
func (l *lending) leave(*instance) bool { return false }

// waitsForCore does nothing: agents say that themselves.
func (l *lending) waitsForCore(*instance, bool) {}

// carryOut executes an effect of a function's core that concerns gateways or agents, and reports
// whether it was one.
func (l *lending) carryOut(f *function, e core.Effect) bool {
	switch e := e.(type) {
	case *core.HandOut:
		l.tell(f, e.CID, agent.Ticket{Ticket: e.Ticket, Lent: e.Lent})
	case core.Recall:
		l.result.Gateways.Recalled += e.Calls
		l.tell(f, e.CID, agent.Recall{Gateway: e.Gateway, Calls: e.Calls, Term: e.Term})
	case core.Drain:
		l.tell(f, e.CID, agent.Drain{Reason: agent.ReasonDone, Detail: e.Reason})
	case core.Refuse:
		for _, t := range e.Tickets {
			l.refuseTicket(t)
		}
	case core.Terminate: // its agent ends after its last call
		f.result.letGo(e.Why)
	default:
		return false
	}
	return true
}

// tell sends a message of the scheduler to an instance.
func (l *lending) tell(f *function, to invocation.CID, what agent.Reply) {
	if in := f.instances[to]; in != nil {
		l.send(func() { in.agent.hear(what) })
	}
}

// refuseTicket refuses a ticket at its gateway.
func (l *lending) refuseTicket(t invocation.Ticket) {
	g := l.byName[t.Gateway]
	l.send(func() { g.refused(t.ID) })
}

// The rest is what the scheduler does with messages.

// offer takes a ticket.
func (l *lending) offer(f *function, t invocation.Ticket) {
	effects := l.scheduler.step(f, &core.Offered{Ticket: t})
	if _, refused := core.AnswerOf[core.OfferRefused](effects); refused {
		l.refuseTicket(t)
	}
}

// join accepts an instance, and learns how long it took to start.
func (l *lending) join(in *instance) {
	f, took := in.function, in.ready-in.launched
	l.scheduler.step(f, core.Joined{CID: in.cid, Capacity: f.class.Concurrency})
	l.tell(f, in.cid, agent.Welcome{Epoch: term.Epoch})
	l.startsOf(f).Observe(took)
	l.scheduler.step(f, core.Started{Took: took})
}

// pull takes what an instance asks for, has done and has lent.
func (l *lending) pull(in *instance, p agent.Pull) {
	pulled := core.Pulled{CID: in.cid, Wants: true, Credits: p.Credits, Idle: p.Idle, NodeBusy: p.NodeBusy, AwaitsCore: p.LongWait.Waited > 0 || p.Low, Awaits: p.LongWait.Ticket()}
	for _, d := range p.Done {
		pulled.Done = append(pulled.Done, core.Done{ID: d.ID, Execution: d.Exec, CoreWait: d.CoreWait, Unclaimed: d.Unclaimed})
	}
	for _, lent := range p.Loans {
		pulled.Loans = append(pulled.Loans, queue.Loan(lent))
	}
	l.scheduler.step(in.function, &pulled)
}

// leaveAsked answers an instance that asks to leave.
func (l *lending) leaveAsked(in *instance, idle time.Duration) {
	f := in.function
	answer, is := core.AnswerOf[core.LeaveAnswered](l.scheduler.step(f, core.LeaveRequested{
		CID: in.cid, Idle: idle, KindStart: l.kindStart(f),
	}))
	if !is {
		return
	}
	if answer.Granted && !answer.Drained {
		f.result.Left++
	}
	l.tell(f, in.cid, agent.LeaveAnswer{Granted: answer.Granted, AskAgain: answer.RetryAfter})
}

// gone is the end of an instance that has ended all its calls.
func (l *lending) gone(in *instance) {
	l.scheduler.step(in.function, core.Left{CID: in.cid})
	l.remove(in)
}
