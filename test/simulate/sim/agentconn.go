package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// resumeWithin is how long a gateway waits for an instance whose connection broke to say
	// which calls came to it.
	resumeWithin = 300 * time.Millisecond
	// cancelPatience is how long an instance may take to end a cancelled call. Then it loses its
	// connection.
	cancelPatience = 10 * time.Second
)

// agentConn is a gateway's end of an instance's connection.
type agentConn struct {
	gateway *gateway
	stream  *stream
	cid     invocation.CID
	// resume is its secret.
	resume int
	// in and lender are set by the first valid claim.
	in     *pool
	lender *core.Lender[*agentConn]
	// running are the calls that the instance has, and last is the number of the last one that
	// the gateway began.
	running []*attempt
	last    int
	// nodeBusy says that the instance's node has more to do than cores.
	nodeBusy bool
	ended    bool
	// resumed says that the instance has another connection by now, and seen is the highest
	// number of a call that came to it by this one.
	resumed bool
	seen    int
}

func (c *agentConn) opened() {}

func (c *agentConn) take(m any) {
	g := c.gateway
	switch m := m.(type) {
	case helloFrame:
		c.greet(m)
	case claimFrame:
		if err := c.claim(m); err != nil {
			c.stream.send(g.node, refusedFrame{m.call})
		}
	case lendFrame:
		c.credit(m.credits)
	case takeBackFrame:
		c.credit(-m.credits)
	case nodeFrame:
		if c.nodeBusy = m.busy; c.lender != nil {
			c.in.core.SetBusy(c.lender, m.busy)
			g.handOver(c.in)
		}
	case longWaitFrame:
		if a := c.attempt(m.call); a != nil {
			a.onLongWait(m.waits)
		}
	case answerFrame:
		if a := c.attempt(m.call); a != nil {
			a.answered(m)
		}
	case releaseFrame:
		if a := c.attempt(m.call); a != nil {
			a.released(m)
		}
	case lastFrame:
		c.stream.close(g.node)
		c.end()
	}
}

func (c *agentConn) closed(closing) { c.end() }

// greet answers the instance's hello.
func (c *agentConn) greet(m helloFrame) {
	g := c.gateway
	g.world.secrets++
	c.cid, c.resume = m.cid, g.world.secrets
	g.agents = append(g.agents, c)
	c.stream.send(g.node, welcomeFrame{c.resume})
	g.resume(m.resume, c.cid, m.seen)
}

// resume settles the instance's last connection, to which calls up to seen came. The gateway may
// not have noticed yet that it is broken.
func (g *gateway) resume(secret int, cid invocation.CID, seen int) {
	for _, c := range slices.Concat(g.broken, g.agents) {
		switch {
		case secret == 0 || c.resume != secret || c.cid != cid:
		case g.takeBroken(c):
			c.settle(seen)
		default:
			c.resumed, c.seen = true, seen
			c.stream.close(g.node)
			c.end()
		}
	}
}

// takeBroken takes a broken connection; false if it was taken already.
func (g *gateway) takeBroken(c *agentConn) bool {
	i := slices.Index(g.broken, c)
	if i >= 0 {
		g.broken = slices.Delete(g.broken, i, i+1)
	}
	return i >= 0
}

// attempt is a call that the instance has; nil if the gateway knows no such call any more.
func (c *agentConn) attempt(number int) *attempt {
	for _, a := range c.running {
		if a.wire == number {
			a.came = true
			return a
		}
	}
	return nil
}

// claim gives the call of a ticket to the instance, or says why not.
func (c *agentConn) claim(m claimFrame) error {
	g := c.gateway
	call := g.find(m.id)
	if call == nil {
		return core.ErrNotWaiting
	}
	if c.in != nil && c.in.fn != call.fn {
		return core.ErrBadToken
	}
	grant, err := call.life.Claim(g.now(), m.token, c.cid)
	if err != nil {
		return err
	}
	g.world.truth.grant(call.callRecord, grant.Attempt, m.token, c.cid)
	p := g.poolOf(call.fn)
	if c.in != p {
		c.in, c.lender = p, core.NewLender(c.cid, c)
		p.core.SetBusy(c.lender, c.nodeBusy)
	}
	a := &attempt{conn: c, call: call, wire: m.call, lent: !call.fn.limited()}
	if a.lent {
		p.core.Began(c.lender)
	}
	g.taken(call)
	c.start(a, grant)
	return nil
}

// hand hands a waiting call to the instance by a credit; false if the call no longer waits.
func (c *agentConn) hand(call *call) bool {
	g := c.gateway
	c.last += 2
	grant, err := call.life.ClaimByLoan(g.now())
	if err != nil {
		return false
	}
	g.world.truth.grantByLoan(call.callRecord, grant.Attempt, c)
	g.mayHand(call, c)
	a := &attempt{conn: c, call: call, wire: c.last, byLoan: true, lent: true}
	a.longWait = core.LongWait[*agentConn]{At: c.lender, Number: uint32(c.last)}
	c.start(a, grant)
	return true
}

// start sends the call of an attempt.
func (c *agentConn) start(a *attempt, grant core.Grant) {
	g := c.gateway
	a.pool, a.number = c.in, grant.Attempt
	a.call.attempt, a.call.granted = a, g.now()
	g.note("grants", uint64(a.call.number), uint64(a.number))
	g.world.truth.wanted(a.call.callRecord)
	if grant.CancelTicket {
		g.cancelTicket(a.call)
	}
	c.running = append(c.running, a)
	g.after(grant.RunBy.Sub(g.now()), func() { g.carryOut(a.call, a.call.life.RunTimeout(a.number, g.now())) })
	c.stream.send(g.node, callFrame{call: a.wire, id: a.call.id, attempt: a.number, remain: a.call.fn.timeout})
}

// over removes an attempt that has ended, and tells whether it was running.
func (c *agentConn) over(a *attempt) bool {
	i := slices.Index(c.running, a)
	if i < 0 {
		return false
	}
	c.running = slices.Delete(c.running, i, i+1)
	return true
}

// credit takes a Lend, or a TakeBack if n is negative.
func (c *agentConn) credit(n int) {
	if c.lender == nil { // nobody lends anything before a valid claim
		c.stream.close(c.gateway.node)
		c.end()
		return
	}
	c.in.core.Lend(c.lender, n)
	c.gateway.handOver(c.in)
}

// end ends the loans of a broken connection, and the calls that the instance has. Calls that
// the gateway began wait a moment for the instance to say whether they came.
func (c *agentConn) end() {
	if c.ended {
		return
	}
	g := c.gateway
	c.ended = true
	g.agents = slices.DeleteFunc(g.agents, func(other *agentConn) bool { return other == c })
	var unsure, lost []*attempt
	for _, a := range c.running {
		if a.byLoan && !a.came {
			unsure = append(unsure, a)
		} else {
			lost = append(lost, a)
		}
	}
	c.running = unsure
	if c.lender != nil {
		c.in.core.Gone(c.lender)
		g.handOver(c.in)
	}
	if len(unsure) > 0 {
		g.broken = append(g.broken, c)
	}
	for _, a := range lost {
		a.lose()
	}
	c.settleSoon()
}

// settleSoon settles the calls that may not have come to the instance, once it has said which
// did or has had time to say so.
func (c *agentConn) settleSoon() {
	settle := func(seen int) {
		if c.gateway.takeBroken(c) {
			c.settle(seen)
		}
	}
	if c.resumed {
		settle(c.seen)
		return
	}
	c.gateway.after(resumeWithin, func() { settle(c.last) })
}

// settle ends the calls that a broken connection has left. Those with numbers up to seen came
// to the instance.
func (c *agentConn) settle(seen int) {
	left := c.running
	c.running = nil
	for _, a := range left {
		if a.wire > seen {
			a.neverCame()
		} else {
			a.lose()
		}
	}
}
