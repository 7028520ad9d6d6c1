package core

import "time"

const (
	// maxConns is how many connections an agent keeps. Before it opens another one, it
	// closes the one that is unused for longest.
	maxConns = 64
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

// connTo is the connection to an address. If the agent has none, it makes one.
func (c *Core) connTo(now time.Time, addr string) (Conn, *conn) {
	if n, known := c.conns.byAddr[addr]; known {
		return n, c.conns.all[n]
	}
	if len(c.conns.all) >= maxConns {
		c.closeLongestUnused(now)
	}
	return c.connect(addr)
}

// connect dials a gateway.
func (c *Core) connect(addr string) (Conn, *conn) {
	n, cn := c.conns.add(addr)
	c.emit(Connect{n, addr})
	return n, cn
}

// disconnect closes a connection that nothing uses.
func (c *Core) disconnect(n Conn, cn *conn) {
	if c.conns.byAddr[cn.addr] == n {
		delete(c.conns.byAddr, cn.addr)
	}
	if cn.phase == connPausing {
		delete(c.conns.all, n)
		return
	}
	cn.phase = connClosing
	c.emit(Disconnect{n})
}

// closeLongestUnused makes room for another connection, if one is unused.
func (c *Core) closeLongestUnused(now time.Time) {
	var longest Conn
	for _, n := range c.conns.numbers() {
		cn := c.conns.all[n]
		if cn.phase != connOpen || !cn.unused() || now.Sub(cn.takenBack) < settleFor {
			continue
		}
		if longest == 0 || cn.unusedSince.Before(c.conns.all[longest].unusedSince) {
			longest = n
		}
	}
	if longest != 0 {
		c.disconnect(longest, c.conns.all[longest])
	}
}

// connsDue dials and closes the connections whose time has come.
func (c *Core) connsDue(now time.Time) {
	if c.conns.due.IsZero() || now.Before(c.conns.due) {
		return
	}
	c.conns.due = time.Time{}
	for _, n := range c.conns.numbers() {
		cn := c.conns.all[n]
		if k := c.dueBack(now, n, cn); k > 0 {
			c.sendPull(now, k)
		}
		switch {
		case cn.phase == connPausing && !now.Before(cn.dialAt):
			cn.phase = connDialing
			c.emit(Connect{n, cn.addr})
		case cn.phase == connPausing:
			c.conns.wakeAt(cn.dialAt)
		case cn.phase != connOpen || !cn.unused():
		case c.life.drained, cn.retired:
			c.disconnectSettled(now, n, cn)
		case c.conns.shared && cn.granted: // no scheduler could name it again
			c.conns.wakeAt(now.Add(unusedFor))
		case !now.Before(cn.unusedSince.Add(unusedFor)):
			c.disconnect(n, cn)
		default:
			c.conns.wakeAt(cn.unusedSince.Add(unusedFor))
		}
	}
}

// disconnectSettled closes a connection that takes no calls any more, once those that crossed its
// last TakeBack have come.
func (c *Core) disconnectSettled(now time.Time, n Conn, cn *conn) {
	if at := cn.takenBack.Add(settleFor); now.Before(at) {
		c.conns.wakeAt(at)
		return
	}
	c.disconnect(n, cn)
}

// closeConns closes the connections of a drained instance.
func (c *Core) closeConns(now time.Time) {
	for _, n := range c.conns.numbers() {
		switch cn := c.conns.all[n]; cn.phase {
		case connOpen:
			c.disconnectSettled(now, n, cn)
		case connDialing, connPausing:
			c.disconnect(n, cn)
		}
	}
}

// apply sends the claims that have waited for the connection.
func (e ConnOpened) apply(c *Core, now time.Time) {
	cn := c.conns.all[e.Conn]
	if cn == nil || cn.phase != connDialing {
		return
	}
	cn.phase, cn.reconnectUntil = connOpen, time.Time{}
	if c.node.busy {
		c.emit(TellNode{e.Conn, true})
	}
	for _, claim := range cn.waiting {
		c.sendClaim(claim)
	}
	cn.waiting = nil
	c.conns.observeUse(now, cn)
}

// apply gives back the claims and the credits of a connection. Its calls go on: to
// break one off would cost the instance, and what the function does may be of use even without
// its answer.
func (e ConnLost) apply(c *Core, now time.Time) {
	cn := c.conns.all[e.Conn]
	if cn == nil || cn.phase == connPausing {
		return
	}
	delete(c.conns.all, e.Conn)
	if c.conns.byAddr[cn.addr] == e.Conn {
		delete(c.conns.byAddr, cn.addr)
	}
	c.conns.idle -= cn.idle
	if cn.idle > 0 || cn.lent() > 0 {
		c.sendPull(now, cn.idle)
	}
	for _, n := range c.calls.at(e.Conn) {
		c.connOfAttemptLost(now, n)
	}
	c.reconnect(now, cn)
}

// reconnect dials again after a connection with loans or calls broke, or could not be made yet.
func (c *Core) reconnect(now time.Time, old *conn) {
	if _, known := c.conns.byAddr[old.addr]; known || c.life.draining {
		return
	}
	if old.phase == connOpen {
		if !old.unused() {
			_, cn := c.connect(old.addr)
			cn.reconnectUntil = now.Add(reconnectFor)
		}
		return
	}
	pause := min(max(2*old.pause, minReconnectPause), maxReconnectPause)
	if now.Add(pause).After(old.reconnectUntil) {
		return
	}
	_, cn := c.conns.add(old.addr)
	cn.phase, cn.reconnectUntil, cn.pause, cn.dialAt = connPausing, old.reconnectUntil, pause, now.Add(pause)
	c.conns.wakeAt(cn.dialAt)
}

// renewIfUsedUp retires a connection most of whose numbers are used up. Its calls run to their ends, and its
// places go to the scheduler, whose next ticket of the gateway opens another connection. No gateway has
// places before its first ticket, so a connection is retired only while a scheduler answers.
func (c *Core) renewIfUsedUp(now time.Time, n Conn, cn *conn) {
	if cn.used < c.conns.renewAfter || cn.retired || c.life.draining || !c.link.established() {
		return
	}
	cn.retired = true
	delete(c.conns.byAddr, cn.addr)
	idle := cn.idle
	c.takeBack(now, n, cn, idle)
	c.sendPull(now, idle)
}
