package core

import "time"

const (
	// maxGateways is how many connections an agent keeps. Before it opens another one, it
	// closes the one that is unused for longest.
	maxGateways = 64
	// unusedFor is how long a connection without loans and calls stays open: a function that
	// is called now and then does not pay for a handshake each time.
	unusedFor = time.Minute
	// settleFor is how long a draining instance keeps a connection after it has taken credits
	// back there. A Call that crossed the TakeBack is declined in that time; after the
	// connection's end its gateway could not know whether it ran.
	settleFor = 100 * time.Millisecond
	// reconnectFor is how long the agent tries to reach a gateway again, after a connection
	// with loans or calls broke. The gateway learns from it which calls never came, and has
	// clients that wait for that.
	reconnectFor = time.Second
	// renewAfter is how many claims and calls a connection carries before another one is opened beside
	// it: their numbers rise by two, and are none beyond 2^32. With a thousand calls a second that is
	// after 12 days, and there are as many until the numbers end.
	renewAfter = 1 << 30
	// minReconnectPause and maxReconnectPause bound the pauses between these tries.
	minReconnectPause = 20 * time.Millisecond
	maxReconnectPause = 250 * time.Millisecond
)

// gatewayAt is the connection to an address. If the agent has none, it makes one.
func (c *Core) gatewayAt(now time.Time, addr string) (Gateway, *gatewayConn) {
	if n, known := c.gateways.byAddr[addr]; known {
		return n, c.gateways.conns[n]
	}
	if len(c.gateways.conns) >= maxGateways {
		c.closeLongestUnused(now)
	}
	return c.connect(addr)
}

// connect dials a gateway.
func (c *Core) connect(addr string) (Gateway, *gatewayConn) {
	n, g := c.gateways.add(addr)
	c.emit(Connect{n, addr})
	return n, g
}

// disconnect closes a connection that nothing uses.
func (c *Core) disconnect(n Gateway, g *gatewayConn) {
	if c.gateways.byAddr[g.addr] == n {
		delete(c.gateways.byAddr, g.addr)
	}
	if g.phase == gatewayPausing {
		delete(c.gateways.conns, n)
		return
	}
	g.phase = gatewayClosing
	c.emit(Disconnect{n})
}

// closeLongestUnused makes room for another connection, if one is unused.
func (c *Core) closeLongestUnused(now time.Time) {
	var longest Gateway
	for _, n := range c.gateways.numbers() {
		g := c.gateways.conns[n]
		if g.phase != gatewayOpen || !g.unused() || now.Sub(g.takenBack) < settleFor {
			continue
		}
		if longest == 0 || g.unusedSince.Before(c.gateways.conns[longest].unusedSince) {
			longest = n
		}
	}
	if longest != 0 {
		c.disconnect(longest, c.gateways.conns[longest])
	}
}

// gatewaysDue dials and closes the connections whose time has come.
func (c *Core) gatewaysDue(now time.Time) {
	if c.gateways.due.IsZero() || now.Before(c.gateways.due) {
		return
	}
	c.gateways.due = time.Time{}
	for _, n := range c.gateways.numbers() {
		g := c.gateways.conns[n]
		if k := c.dueBack(now, n, g); k > 0 {
			c.sendPull(now, k)
		}
		switch {
		case g.phase == gatewayPausing && !now.Before(g.dialAt):
			g.phase = gatewayDialing
			c.emit(Connect{n, g.addr})
		case g.phase == gatewayPausing:
			c.gateways.wakeAt(g.dialAt)
		case g.phase != gatewayOpen || !g.unused():
		case c.life.drained, g.retired:
			c.disconnectSettled(now, n, g)
		case c.gateways.shared && g.granted: // no scheduler could name it again
			c.gateways.wakeAt(now.Add(unusedFor))
		case !now.Before(g.unusedSince.Add(unusedFor)):
			c.disconnect(n, g)
		default:
			c.gateways.wakeAt(g.unusedSince.Add(unusedFor))
		}
	}
}

// disconnectSettled closes a connection that takes no calls any more, once those that crossed its
// last TakeBack have come.
func (c *Core) disconnectSettled(now time.Time, n Gateway, g *gatewayConn) {
	if at := g.takenBack.Add(settleFor); now.Before(at) {
		c.gateways.wakeAt(at)
		return
	}
	c.disconnect(n, g)
}

// closeGateways closes the connections of a drained instance.
func (c *Core) closeGateways(now time.Time) {
	for _, n := range c.gateways.numbers() {
		switch g := c.gateways.conns[n]; g.phase {
		case gatewayOpen:
			c.disconnectSettled(now, n, g)
		case gatewayDialing, gatewayPausing:
			c.disconnect(n, g)
		}
	}
}

// apply sends the claims that have waited for the connection.
func (e GatewayOpened) apply(c *Core, now time.Time) {
	g := c.gateways.conns[e.Gateway]
	if g == nil || g.phase != gatewayDialing {
		return
	}
	g.phase, g.reconnectUntil = gatewayOpen, time.Time{}
	if c.node.busy {
		c.emit(TellNode{e.Gateway, true})
	}
	for _, claim := range g.waiting {
		c.sendClaim(claim)
	}
	g.waiting = nil
	c.gateways.observeUse(now, g)
}

// apply gives back the claims and the credits of a connection. Its calls go on: to
// break one off would cost the instance, and what the function does may be of use even without
// its answer.
func (e GatewayLost) apply(c *Core, now time.Time) {
	g := c.gateways.conns[e.Gateway]
	if g == nil || g.phase == gatewayPausing {
		return
	}
	delete(c.gateways.conns, e.Gateway)
	if c.gateways.byAddr[g.addr] == e.Gateway {
		delete(c.gateways.byAddr, g.addr)
	}
	c.gateways.idle -= g.idle
	if g.idle > 0 || g.lent() > 0 {
		c.sendPull(now, g.idle)
	}
	for _, n := range c.calls.at(e.Gateway) {
		c.gatewayOfAttemptLost(now, n)
	}
	c.reconnect(now, g)
}

// reconnect dials again after a connection with loans or calls broke, or could not be made yet.
func (c *Core) reconnect(now time.Time, old *gatewayConn) {
	if _, known := c.gateways.byAddr[old.addr]; known || c.life.draining {
		return
	}
	if old.phase == gatewayOpen {
		if !old.unused() {
			_, g := c.connect(old.addr)
			g.reconnectUntil = now.Add(reconnectFor)
		}
		return
	}
	pause := min(max(2*old.pause, minReconnectPause), maxReconnectPause)
	if now.Add(pause).After(old.reconnectUntil) {
		return
	}
	_, g := c.gateways.add(old.addr)
	g.phase, g.reconnectUntil, g.pause, g.dialAt = gatewayPausing, old.reconnectUntil, pause, now.Add(pause)
	c.gateways.wakeAt(g.dialAt)
}

// renewIfUsedUp retires a connection most of whose numbers are used up. Its calls run to their ends, and its
// places go to the scheduler, whose next ticket of the gateway opens another connection. No gateway has
// places before its first ticket, so a connection is retired only while a scheduler answers.
func (c *Core) renewIfUsedUp(now time.Time, n Gateway, g *gatewayConn) {
	if g.used < c.gateways.renewAfter || g.retired || c.life.draining || !c.link.established() {
		return
	}
	g.retired = true
	delete(c.gateways.byAddr, g.addr)
	idle := g.idle
	c.takeBack(now, n, g, idle)
	c.sendPull(now, idle)
}
