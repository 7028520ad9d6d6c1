package core

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// surplusAfter is how long a recalled place is idle before it goes back within the term of
// its loan. A gateway whose next calls come sooner keeps it: otherwise two busy gateways would
// pass it to and fro, and each call would cost a ticket.
const surplusAfter = 2 * time.Millisecond

// gateways are the connections to gateways, and the places that are lent by each.
type gateways struct {
	conns map[Gateway]*gatewayConn
	// byAddr are the connections that carry claims: all but those that close or are retired.
	byAddr map[string]Gateway
	last   Gateway
	// renewAfter is the constant; tests change it.
	renewAfter int
	// idle is the sum of the idle credits of all connections. It is at most the number of free places, but for those that
	// are shared.
	idle int
	// due is when a connection has to be dialled or closed, or earlier; zero for never.
	due time.Time
	// forsakenSince is since when no scheduler answers who could move places; zero while one does. shared says that each
	// gateway may have credits for the same places.
	forsakenSince time.Time
	shared        bool
	// lends says that the last ticket was of a function without limits, as far as it told: gateways may
	// have places.
	lends bool
}

type gatewayPhase int

const (
	gatewayDialing gatewayPhase = iota
	// gatewayPausing waits to dial again.
	gatewayPausing
	gatewayOpen
	gatewayClosing
)

// gatewayConn is a connection to a gateway, or the attempt to make one.
type gatewayConn struct {
	addr  string
	phase gatewayPhase
	// granted says that the gateway has granted a claim on this connection, so it knows the instance. A gateway that
	// gives places back while no scheduler answers wants none: it drains, or the function has limits now.
	granted bool
	// idle are the credits that no call has used, loans the calls that run by a loan, and
	// users the attempts that claim or run here, with those by a loan.
	idle, loans, users int
	// recalled are the places that go back to the scheduler, at most idle and loans. Until
	// termEnds, those go back that are idle for surplusAfter, and then all.
	recalled int
	termEnds time.Time
	// idleSince is since when there have been idle credits all the time.
	idleSince time.Time
	// used counts claims and calls. retired says that the connection ends once those that run have
	// ended: it has no idle credits, and keeps no place.
	used    int
	retired bool
	// waiting are claims that are sent when the connection is open.
	waiting []Claim
	// unusedSince is when it had neither credits nor calls any more; zero while it has some.
	unusedSince time.Time
	// takenBack is when credits were taken back last.
	takenBack time.Time
	// reconnectUntil is when the agent stops dialling; zero for a connection that is dialled
	// once. pause is the last pause and dialAt its end.
	reconnectUntil time.Time
	pause          time.Duration
	dialAt         time.Time
}

func newGateways() gateways {
	return gateways{conns: make(map[Gateway]*gatewayConn), byAddr: make(map[string]Gateway), renewAfter: renewAfter}
}

// lent is how many calls the instance takes from the gateway without a ticket.
func (g *gatewayConn) lent() int {
	if g.retired {
		return 0
	}
	return g.idle + g.loans - g.recalled
}

func (g *gatewayConn) unused() bool { return g.idle == 0 && g.users == 0 }

// open is an open connection, or nil.
func (gs *gateways) open(n Gateway) *gatewayConn {
	if g := gs.conns[n]; g != nil && g.phase == gatewayOpen {
		return g
	}
	return nil
}

// add adds a connection to an address that has none.
func (gs *gateways) add(addr string) (Gateway, *gatewayConn) {
	gs.last++
	g := &gatewayConn{addr: addr}
	gs.conns[gs.last], gs.byAddr[addr] = g, gs.last
	return gs.last, g
}

// numbers are those of all connections, in order.
func (gs *gateways) numbers() []Gateway { return slices.Sorted(maps.Keys(gs.conns)) }

// lent is how many calls the instance takes from all gateways without a ticket.
func (gs *gateways) lent() int {
	n := 0
	for _, g := range gs.conns {
		n += g.lent()
	}
	return n
}

// loans says what is lent, by the gateways' addresses in order; nil if nothing is.
func (gs *gateways) loans() []Loan {
	var loans []Loan
	for _, g := range gs.conns {
		if lent := g.lent(); lent > 0 {
			loans = append(loans, Loan{Gateway: g.addr, Calls: lent})
		}
	}
	slices.SortFunc(loans, func(a, b Loan) int { return strings.Compare(a.Gateway, b.Gateway) })
	return loans
}

// lend adds n credits to a connection; a negative n takes some back.
func (gs *gateways) lend(now time.Time, g *gatewayConn, n int) {
	if g.idle == 0 {
		g.idleSince = now
	}
	g.idle += n
	gs.idle += n
	gs.observeUse(now, g)
}

// observeUse notes whether a connection is in use.
func (gs *gateways) observeUse(now time.Time, g *gatewayConn) {
	switch {
	case !g.unused():
		g.unusedSince = time.Time{}
	case g.unusedSince.IsZero():
		g.unusedSince = now
		if g.retired {
			gs.wakeAt(now.Add(settleFor))
			return
		}
		gs.wakeAt(now.Add(unusedFor))
	}
}

func (gs *gateways) wakeAt(t time.Time) { gs.due = earliest(gs.due, t) }

// apply takes credits that the gateway gives back, and pulls with them. What the gateway
// gives back beyond its idle credits has crossed a TakeBack, so it was given back twice.
func (e Returned) apply(c *Core, now time.Time) {
	g := c.gateways.open(e.Gateway)
	if g == nil {
		return
	}
	g.granted = g.granted && c.link.established()
	n := min(e.Credits, g.idle)
	if n > 0 {
		c.gateways.lend(now, g, -n)
		g.wentBack(n)
		c.sendPull(now, n)
	}
	if excess := e.Credits - n; excess > 0 {
		c.emit(Lend{e.Gateway, excess})
	}
}

// reply takes loans of a gateway back, as soon as dueBack and leaveGateway let them go. It
// answers with a Pull in any case, so that the scheduler knows what is left.
func (r Recall) reply(c *Core, now time.Time) {
	if !c.life.takesCalls() {
		return
	}
	n := c.gateways.byAddr[r.Gateway]
	g := c.gateways.open(n)
	if g == nil {
		c.sendPull(now, 0)
		return
	}
	if ends := now.Add(r.Term); g.recalled == 0 || ends.Before(g.termEnds) {
		g.termEnds = ends
	}
	g.recalled = min(g.recalled+max(r.Calls, 0), g.idle+g.loans)
	c.sendPull(now, c.dueBack(now, n, g))
}

// dueBack takes recalled places back that are idle, if it is time, and returns how many they are.
func (c *Core) dueBack(now time.Time, number Gateway, g *gatewayConn) int {
	n := min(g.recalled, g.idle)
	if n == 0 || g.phase != gatewayOpen {
		return 0
	}
	if at := g.backAt(); now.Before(at) {
		c.gateways.wakeAt(at)
		return 0
	}
	c.takeBack(now, number, g, n)
	return n
}

// backAt is when idle places go back that were recalled.
func (g *gatewayConn) backAt() time.Time { return earliest(g.termEnds, g.idleSince.Add(surplusAfter)) }

// wentBack counts n places that the scheduler has again against those that it recalled.
func (g *gatewayConn) wentBack(n int) { g.recalled = max(0, g.recalled-n) }

// takeBack takes n idle credits of a gateway back.
func (c *Core) takeBack(now time.Time, number Gateway, g *gatewayConn, n int) {
	if n > 0 {
		g.takenBack = now
		c.gateways.lend(now, g, -n)
		g.wentBack(n)
		c.emit(TakeBack{number, n})
	}
}

// takeAllBack takes all idle credits back, and returns how many they were.
func (c *Core) takeAllBack(now time.Time) int {
	all := c.gateways.idle
	if all == 0 {
		return 0
	}
	for _, n := range c.gateways.numbers() {
		g := c.gateways.conns[n]
		c.takeBack(now, n, g, g.idle)
	}
	return all
}

// apply starts a call that a gateway has handed over by a credit, or declines it if the
// credit was taken back meanwhile.
func (e Called) apply(c *Core, now time.Time) {
	g := c.gateways.open(e.Gateway)
	if g == nil {
		return
	}
	if g.used++; g.idle == 0 {
		c.emit(Decline{e.Gateway, e.Call})
		return
	}
	c.noteCall(now)
	n, a := c.calls.addAttempt(e.ID, e.Gateway)
	a.byLoan = true
	if e.Remaining > 0 {
		a.beginBy = now.Add(e.Remaining - e.Remaining/runShare)
	}
	g.loans++
	g.users++
	c.gateways.lend(now, g, -1)
	c.emit(Accept{Attempt: n, Gateway: e.Gateway, Call: e.Call})
	c.renewIfUsedUp(now, e.Gateway, g)
	beginCall(c, now, n, a)
}

// leaveGateway ends the use of a connection by an attempt. Whether the attempt's place stays
// with the gateway, if wanted, is the result.
func (c *Core) leaveGateway(now time.Time, a *attempt, wanted bool) (keeps bool) {
	g := c.gateways.conns[a.gateway]
	if g == nil {
		return false
	}
	g.users--
	if a.byLoan {
		g.loans--
	}
	keeps = wanted && g.phase == gatewayOpen && !g.retired && !c.life.draining && (g.recalled == 0 || now.Before(g.termEnds))
	switch {
	case keeps:
		c.gateways.lend(now, g, 1)
		if g.recalled > 0 {
			c.gateways.wakeAt(g.backAt())
		}
	case wanted:
		g.wentBack(1)
	}
	c.gateways.observeUse(now, g)
	return keeps
}

// claimAt claims a call at its gateway, as soon as there is a connection.
func (c *Core) claimAt(now time.Time, n Attempt, a *attempt) {
	number, g := c.gatewayAt(now, a.ticket.Gateway)
	a.gateway = number
	g.users++
	c.gateways.observeUse(now, g)
	claim := Claim{Attempt: n, Gateway: number, Ticket: *a.ticket}
	if g.phase == gatewayOpen {
		c.sendClaim(claim)
		c.renewIfUsedUp(now, number, g)
		return
	}
	g.waiting = append(g.waiting, claim)
}

// sendClaim sends a claim unless it was given up meanwhile.
func (c *Core) sendClaim(claim Claim) {
	if a := c.calls.inPhase(claiming, claim.Attempt); a != nil {
		a.sent = true
		c.gateways.conns[claim.Gateway].used++
		c.emit(claim)
	}
}
