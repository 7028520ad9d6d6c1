package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// Times of an instance, shorter than those of a real one.
const (
	backoffAfter = 2 * time.Second
	idleTimeout  = 3 * time.Second
	// sharesWithin is how long an instance without a scheduler may not share its places yet, by slow clocks: it tries to
	// reach schedulers that do not answer. It tries nothing while it stands still.
	sharesWithin = time.Second
)

// agent is an instance's agent: the core of the product, and around it what its
// shell does.
type agent struct {
	*node
	instance *instance
	core     *core.Core
	session  *session
	attempts []*agentAttempt
	// gateways are its connections, and broken what it remembers of those that broke, by address.
	gateways []*gatewayConn
	broken   map[string]resumption
	// lends says of the tickets that it was handed whether their places are lent.
	lends map[invocation.ID]bool
	// unclaimed are the times at which it was handed tickets that it has not claimed, in the world's time.
	unclaimed map[invocation.ID]time.Duration
	wakes     int
	// lastBusy is when it last had a call, and full when it last had no free place, in the
	// world's time.
	lastBusy time.Time
	full     time.Duration
	// forsaken is since when no scheduler answers, in the world's time; 0 while one does. lastLent says that the last ticket
	// said that its place is lent. shares says that it has lent places without a call, which no scheduler has heard of.
	forsaken         time.Duration
	lastLent, shares bool
	// gaveUp says that it takes no more calls, and spent that its function must not
	// be given one any more.
	gaveUp, spent bool
	nodeAgent     nodeAgent
	// lies says that it tells wrong numbers, and spare that it is of no function so far.
	lies, spare bool
}

// session is a stream to a scheduler, or the try to get one.
type session struct {
	agent  *agent
	name   core.Session
	stream *stream
	to     *node
	heard  bool // a reply
}

func newAgent(n *node, in *instance) *agent {
	a := &agent{node: n, instance: in, broken: make(map[string]resumption), lends: make(map[invocation.ID]bool), unclaimed: make(map[invocation.ID]time.Duration), lies: n.world.chance(0.05), spare: in.fn.pool}
	p := core.Params{Spare: a.spare, Owner: in.owner, Jitter: 1 + n.world.rng.Float64()/10}
	if !a.spare {
		p.Concurrency, p.BackoffAfter, p.IdleTimeout = in.fn.concurrency, backoffAfter, idleTimeout
	}
	a.core = core.New(p)
	return a
}

func (a *agent) boot() {
	a.world.explain(a.name, fmt.Sprintf("is instance %s of function %d", a.instance.cid, a.instance.fn.index))
	a.step(core.Begin{})
	a.meetNodeAgent()
	if a.spare {
		a.after(a.world.between(10*time.Millisecond, 400*time.Millisecond), func() { a.step(core.RuntimeReady{}) })
		return
	}
	a.load(400 * time.Millisecond)
}

// load lets the function load, which may fail.
func (a *agent) load(within time.Duration) {
	w := a.world
	if a.instance.fn.broken || w.faulty() && w.chance(0.03) {
		a.after(w.between(10*time.Millisecond, time.Second), func() { a.step(core.FunctionFailed{}) })
		return
	}
	if w.faulty() && w.chance(0.01) {
		a.after(startupTimeout, func() { a.step(core.FunctionFailed{TimedOut: true}) })
		return
	}
	a.after(w.between(within/40, within), func() { a.step(core.FunctionReady{}) })
}

func (a *agent) accept(*stream, any) sink { return nil }

func (a *agent) audit() Rule {
	runs, held := 0, 0
	for _, t := range a.attempts {
		if t.run > 0 && !t.over {
			runs++
		}
		if !t.over {
			held++
		}
	}
	if held > 0 {
		a.lastBusy = a.now()
	}
	if a.isFull() {
		a.full = a.world.now
	}
	switch {
	case a.isHeard():
		a.forsaken = 0
	case a.forsaken == 0:
		a.forsaken = a.world.now
	}
	switch free := a.instance.fn.concurrency - held; {
	case runs > a.instance.fn.concurrency:
		return RuleWithinCapacity
	case a.mostLent() > free, !a.shares && a.lent() > free:
		return RuleLendsWhatItHas
	case a.forsaken != 0 && a.world.now-max(a.forsaken, a.node.turned) > sharesWithin && a.lastLent && !a.isFull() && !a.dials() && !a.sharesAll():
		return RuleSharesAlone
	}
	return ""
}

// isHeard tells whether a scheduler has answered on the present stream.
func (a *agent) isHeard() bool { return a.session != nil && a.session.heard }

// mostLent is how many calls one gateway may hand to it at most.
func (a *agent) mostLent() (most int) {
	for _, c := range a.gateways {
		most = max(most, c.credits)
	}
	return most
}

// sharesAll tells whether each gateway that knows the instance, and wants places, may call it.
func (a *agent) sharesAll() bool {
	return !slices.ContainsFunc(a.gateways, func(c *gatewayConn) bool {
		return c.granted && c.open && !c.closing && !c.lost && c.credits < 1
	})
}

// isFull reports whether no place of it is idle.
func (a *agent) isFull() bool {
	held := 0
	for _, t := range a.attempts {
		if !t.over {
			held++
		}
	}
	return held >= a.instance.fn.concurrency || a.nodeAgent.asks != 0 || a.gaveUp || !a.instance.ready
}

// mayDial is how long a ticket may hold a place while its gateway is dialled: 4 s after several that do not answer,
// and twice as long by slow clocks.
const mayDial = 8 * time.Second

// dials tells whether a ticket may hold a place because its gateway is being dialled.
func (a *agent) dials() bool {
	for _, at := range a.unclaimed {
		if a.world.now-at <= mayDial {
			return true
		}
	}
	return false
}

// lent is how many calls its gateways may hand to it.
func (a *agent) lent() (n int) {
	for _, c := range a.gateways {
		n += max(0, c.credits)
	}
	return n
}

// step lets the core decide, and does what it says.
func (a *agent) step(e core.Event) {
	for _, effect := range a.core.Step(a.now(), e) {
		if a.world.trace.sink != nil {
			a.world.explain(a.name, fmt.Sprintf("%T%v makes it %T%v", e, e, effect, effect))
		}
		a.do(effect)
	}
}

func (a *agent) do(effect core.Effect) {
	switch e := effect.(type) {
	case core.Dial:
		a.dialScheduler(e)
	case core.Send:
		a.say(e)
	case core.HangUp:
		if a.speaks(e.Session) {
			a.session.stream.send(a.node, hangUpRequest{})
		}
	case core.Drop:
		if a.speaks(e.Session) {
			a.session.stream.close(a.node)
			a.session = nil
		}
	case core.Claim:
		a.takes()
		a.claim(e)
	case core.Accept:
		a.takes()
		a.accepted(e)
	case core.Start:
		if a.spent {
			a.world.violate(RuleSpentNotCalled, 0)
		}
		a.startCall(e)
	case core.AskCore:
		a.askCore(e.Attempt)
	case core.EndCore, core.GiveUpCore:
		a.nodeAgent.asks = 0
	case core.Deliver:
		a.deliver(e)
	case core.Connect:
		a.connect(e)
	case core.Disconnect:
		if c := a.connOf(e.Conn); c != nil {
			c.disconnect()
		}
	case core.Decline:
		a.connOf(e.Conn).decline(e.Call)
	case core.Lend:
		c := a.connOf(e.Conn)
		a.shares = a.shares || !a.isHeard()
		c.credits += e.Credits
		c.send(lendFrame{e.Credits})
	case core.TellNode:
		a.connOf(e.Conn).send(nodeFrame{e.Busy})
	case core.TellWait:
		a.tellWait(e)
	case core.TakeBack:
		a.takeBack(e)
	case core.Release:
		a.release(e.Attempt)
	case core.Cancel:
		a.cancelCall(e.Attempt)
	case core.WakeAt:
		a.wakeAt(e.Time)
	case core.LoadFunction:
		a.spare = false
		a.load(50 * time.Millisecond)
	case core.Draining:
		a.gaveUp = true
	case core.End:
		a.mayEnd()
		a.exit()
	}
}

// takes looks whether the instance may take a call.
func (a *agent) takes() {
	if a.gaveUp {
		a.world.violate(RuleLeaverTakesNothing, 0)
	}
	if a.spare {
		a.world.violate(RuleSpareIsIdle, 0)
	}
}

// mayEnd looks whether all of its calls have ended, and the gateways have their results.
func (a *agent) mayEnd() {
	if len(a.attempts)+len(a.gateways) > 0 {
		a.world.violate(RuleEndsAfterCalls, 0)
	}
}

// mayAsk looks at how many tickets the core asks for, and at what it says to have lent.
func (a *agent) mayAsk(p core.Pull) {
	held := 0
	for _, t := range a.attempts {
		if !t.over {
			held++
		}
	}
	if held+a.lent()+p.Credits > a.instance.fn.concurrency {
		a.world.violate(RuleAsksForRoom, 0)
	}
}

// takeBack takes credits back.
func (a *agent) takeBack(e core.TakeBack) {
	c := a.connOf(e.Conn)
	if idle := a.now().Sub(a.lastBusy); !a.shares && !a.gaveUp && e.Credits > c.recalled && idle < backoffAfter {
		a.world.violate(RuleKeepsLoans, 0)
	}
	c.credits -= e.Credits
	c.recalled = max(0, c.recalled-e.Credits)
	c.send(takeBackFrame{e.Credits})
}

// mayKeep looks at whether the place of a call stays with its gateway.
func (a *agent) mayKeep(t *agentAttempt, keeps bool) {
	c := t.conn
	switch {
	case keeps && a.gaveUp:
		a.world.violate(RuleLeaverLendsNothing, 0)
	case keeps && !t.lent:
		a.world.violate(RuleLendsIfAsked, 0)
	case keeps || !t.lent || a.gaveUp || c.lost || c.closing:
	case c.recalled <= 0:
		a.world.violate(RuleKeepsLoans, 0)
	default:
		c.recalled--
	}
}

func (a *agent) wakeAt(t time.Time) {
	a.wakes++
	mine := a.wakes
	a.after(t.Sub(a.now()), func() {
		if a.wakes == mine {
			a.step(core.Wake{})
		}
	})
}

// exit is the end of the process.
func (a *agent) exit() {
	a.world.at(0, func() {
		a.kill(false)
		a.world.platform.ended(a.instance)
	})
}

func (a *agent) speaks(name core.Session) bool { return a.session != nil && a.session.name == name }

// dialScheduler opens a stream to the scheduler of an address or, by way of a
// balancer, to any.
func (a *agent) dialScheduler(e core.Dial) {
	to := a.world.nodeOf(e.Addr)
	if to == nil {
		to = pick(a.world, a.world.schedulers)
	}
	s := &session{agent: a, name: e.Session, to: to}
	a.session = s
	if a.spare {
		if e.Addr != a.instance.owner {
			a.world.violate(RuleSpareAtHome, 0)
		}
		s.stream = a.dial(to, openSpare{a}, s)
		return
	}
	s.stream = a.dial(to, openPull{fn: a.instance.fn, cid: a.instance.cid}, s)
}

func (a *agent) say(e core.Send) {
	if !a.speaks(e.Session) {
		return
	}
	p, asks := e.Message.(core.Pull)
	if asks {
		a.mayAsk(p)
		a.shares = false
	}
	if asks && a.lies {
		if a.instance.fn.concurrency == 1 {
			// Otherwise it would ask for what it does not take, which only
			// harms itself.
			p.Credits *= 1_000_000
		}
		for i := range p.Done {
			p.Done[i].Exec = 1e18
		}
		e.Message = p
	}
	a.session.stream.send(a.node, e.Message)
}

func (s *session) opened() {
	if s.agent.session == s {
		s.agent.step(core.Opened{Session: s.name})
	}
}

func (s *session) take(m any) {
	if s.agent.session != s {
		return
	}
	switch m := m.(type) {
	case unknownInstance:
		s.agent.lose(s, core.CauseUnknown)
	case core.Reply:
		s.heard = true
		s.agent.noteReply(m)
		leaves := s.agent.gaveUp
		s.agent.step(core.Received{Session: s.name, Reply: m})
		if told, answered := m.(core.LeaveAnswer); answered && !told.Granted && s.agent.gaveUp && !leaves {
			s.agent.world.violate(RuleLeavesIfAllowed, 0)
		}
	}
}

// noteReply notes what a scheduler says about loans.
func (a *agent) noteReply(m core.Reply) {
	switch m := m.(type) {
	case core.Ticket:
		a.lends[m.Ticket.ID], a.nodeAgent.ticket = m.Lent, m.Ticket.ID
		if m.Lent || !a.nodeAgent.busy { // on a busy node it may not say it of the function
			a.lastLent = m.Lent
		}
		a.unclaimed[m.Ticket.ID] = a.world.now
	case core.Recall:
		for _, c := range a.gateways {
			if c.addr == m.Gateway && c.open && !c.closing {
				c.recalled = min(c.recalled+m.Calls, c.credits+c.byLoan())
			}
		}
	}
}

func (s *session) closed(how closing) {
	why := core.CauseBroken
	if how == hungUp {
		why = core.CauseClosed
	}
	s.agent.lose(s, why)
}

func (a *agent) lose(s *session, why core.Cause) {
	if a.session == s {
		a.session = nil
		a.step(core.Lost{Session: s.name, Cause: why})
	}
}
