package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// closePatience is how long an instance waits for a gateway to close a connection, once it has
// closed its side.
const closePatience = 2 * time.Second

// gatewayConn is an instance's end of a connection to a gateway, or the attempt to make one.
type gatewayConn struct {
	agent  *agent
	name   core.Conn
	addr   string
	stream *stream
	// open says that the gateway has said welcome, closing that the instance has closed its
	// side, and lost that the connection is over.
	open, closing, lost bool
	// resume is the connection's secret, and seen the number of the last call by a credit.
	resume, seen int
	// credits are those that the gateway will have when all frames have come.
	credits int
	// granted says that the gateway has granted a claim, and has not given places back without a scheduler since.
	granted bool
	// recalled are the places that a scheduler wants back.
	recalled int
	// claims counts the claims, whose numbers are odd.
	claims int
	// calls are calls by a credit that wait for the core's decision.
	calls map[uint32]callFrame
}

// resumption is what an instance remembers of a connection that broke.
type resumption struct{ resume, seen int }

func (a *agent) connect(e core.Connect) {
	c := &gatewayConn{agent: a, name: e.Conn, addr: e.Addr, calls: make(map[uint32]callFrame)}
	a.gateways = append(a.gateways, c)
	c.stream = a.dial(a.world.nodeOf(e.Addr), openCalls{}, c)
}

// connOf is the connection of a name; nil if it is over.
func (a *agent) connOf(name core.Conn) *gatewayConn {
	for _, c := range a.gateways {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (c *gatewayConn) opened() {
	last := c.agent.broken[c.addr]
	c.send(helloFrame{cid: c.agent.instance.cid, resume: last.resume, seen: last.seen})
}

func (c *gatewayConn) send(m any) { c.stream.send(c.agent.node, m) }

func (c *gatewayConn) take(m any) {
	a := c.agent
	switch m := m.(type) {
	case welcomeFrame:
		c.open, c.resume = true, m.resume
		delete(a.broken, c.addr)
		a.step(core.ConnOpened{Conn: c.name})
	case callFrame:
		c.called(m)
	case refusedFrame:
		if t := c.attempt(m.call); t != nil {
			a.forget(t)
			a.step(core.Refused{Attempt: t.name})
		}
	case cancelFrame:
		if t := c.attempt(m.call); t != nil {
			t.cancelled = true
			a.step(core.Cancelled{Attempt: t.name})
		}
	case giveUpFrame:
		if t := c.attempt(m.call); t != nil {
			a.step(core.GiveUp{Attempt: t.name})
		}
	case returnFrame:
		c.recalled = max(0, c.recalled-min(m.credits, c.credits))
		c.credits -= m.credits
		c.granted = c.granted && a.isHeard()
		a.step(core.Returned{Conn: c.name, Credits: m.credits})
	}
}

// called is a call, claimed or by a credit.
func (c *gatewayConn) called(m callFrame) {
	if m.call%2 == 1 {
		if t := c.attempt(m.call); t != nil {
			t.granted, c.granted = m, true
			c.agent.step(core.Granted{Attempt: t.name})
		}
		return
	}
	c.seen = m.call
	c.credits--
	c.calls[uint32(m.call)] = m
	c.agent.step(core.Called{Conn: c.name, Call: uint32(m.call), ID: m.id, Remaining: m.remain})
	delete(c.calls, uint32(m.call))
}

// attempt is what the instance has of a call.
func (c *gatewayConn) attempt(number int) *agentAttempt {
	for _, t := range c.agent.attempts {
		if t.conn == c && t.number == number {
			return t
		}
	}
	return nil
}

// decline gives a call back that came by a credit which the instance had taken back.
func (c *gatewayConn) decline(call uint32) {
	c.credits++
	c.send(releaseFrame{call: int(call), noCredit: true})
}

// byLoan is how many calls run by a loan of the gateway.
func (c *gatewayConn) byLoan() (n int) {
	for _, t := range c.agent.attempts {
		if t.conn == c && t.number%2 == 0 {
			n++
		}
	}
	return n
}

// disconnect closes the instance's side.
func (c *gatewayConn) disconnect() {
	a := c.agent
	c.closing = true
	if !c.open {
		c.stream.close(a.node)
		a.world.at(0, func() { a.node.do(a.life, true, c.end) })
		return
	}
	c.send(lastFrame{})
	a.after(closePatience, func() {
		c.stream.close(a.node)
		c.end()
	})
}

// closed is the end of the connection: the gateway has all, or is gone.
func (c *gatewayConn) closed(closing) { c.end() }

func (c *gatewayConn) end() {
	if c.lost {
		return
	}
	a := c.agent
	if c.lost = true; c.open && !c.closing {
		a.broken[c.addr] = resumption{c.resume, c.seen}
	}
	a.gateways = slices.DeleteFunc(a.gateways, func(other *gatewayConn) bool { return other == c })
	for _, t := range slices.Clone(a.attempts) {
		if claims := t.number%2 == 1; t.conn == c && claims && !t.started {
			a.forget(t)
		}
	}
	a.step(core.ConnLost{Conn: c.name})
}
