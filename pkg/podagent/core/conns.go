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

// conns are the connections to gateways, and the places that are lent by each.
type conns struct {
	all map[Conn]*conn
	// byAddr are the connections that carry claims: all but those that close or are retired.
	byAddr map[string]Conn
	last   Conn
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

type connPhase int

const (
	connDialing connPhase = iota
	// connPausing waits to dial again.
	connPausing
	connOpen
	connClosing
)

// conn is a connection to a gateway, or the attempt to make one.
type conn struct {
	addr  string
	phase connPhase
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

func newConns() conns {
	return conns{all: make(map[Conn]*conn), byAddr: make(map[string]Conn), renewAfter: renewAfter}
}

// lent is how many calls the instance takes from the gateway without a ticket.
func (cn *conn) lent() int {
	if cn.retired {
		return 0
	}
	return cn.idle + cn.loans - cn.recalled
}

func (cn *conn) unused() bool { return cn.idle == 0 && cn.users == 0 }

// open is an open connection, or nil.
func (cs *conns) open(n Conn) *conn {
	if cn := cs.all[n]; cn != nil && cn.phase == connOpen {
		return cn
	}
	return nil
}

// add adds a connection to an address that has none.
func (cs *conns) add(addr string) (Conn, *conn) {
	cs.last++
	cn := &conn{addr: addr}
	cs.all[cs.last], cs.byAddr[addr] = cn, cs.last
	return cs.last, cn
}

// numbers are those of all connections, in order.
func (cs *conns) numbers() []Conn { return slices.Sorted(maps.Keys(cs.all)) }

// lent is how many calls the instance takes from all gateways without a ticket.
func (cs *conns) lent() int {
	n := 0
	for _, cn := range cs.all {
		n += cn.lent()
	}
	return n
}

// loans says what is lent, by the gateways' addresses in order; nil if nothing is.
func (cs *conns) loans() []Loan {
	var loans []Loan
	for _, cn := range cs.all {
		if lent := cn.lent(); lent > 0 {
			loans = append(loans, Loan{Gateway: cn.addr, Calls: lent})
		}
	}
	slices.SortFunc(loans, func(a, b Loan) int { return strings.Compare(a.Gateway, b.Gateway) })
	return loans
}

// lend adds n credits to a connection; a negative n takes some back.
func (cs *conns) lend(now time.Time, cn *conn, n int) {
	if cn.idle == 0 {
		cn.idleSince = now
	}
	cn.idle += n
	cs.idle += n
	cs.observeUse(now, cn)
}

// observeUse notes whether a connection is in use.
func (cs *conns) observeUse(now time.Time, cn *conn) {
	switch {
	case !cn.unused():
		cn.unusedSince = time.Time{}
	case cn.unusedSince.IsZero():
		cn.unusedSince = now
		if cn.retired {
			cs.wakeAt(now.Add(settleFor))
			return
		}
		cs.wakeAt(now.Add(unusedFor))
	}
}

func (cs *conns) wakeAt(t time.Time) { cs.due = earliest(cs.due, t) }

// apply takes credits that the gateway gives back, and pulls with them. What the gateway
// gives back beyond its idle credits has crossed a TakeBack, so it was given back twice.
func (e Returned) apply(c *Core, now time.Time) {
	cn := c.conns.open(e.Conn)
	if cn == nil {
		return
	}
	cn.granted = cn.granted && c.link.established()
	n := min(e.Credits, cn.idle)
	if n > 0 {
		c.conns.lend(now, cn, -n)
		cn.wentBack(n)
		c.sendPull(now, n)
	}
	if excess := e.Credits - n; excess > 0 {
		c.emit(Lend{e.Conn, excess})
	}
}

// reply takes loans of a gateway back, as soon as dueBack and leaveConn let them go. It
// answers with a Pull in any case, so that the scheduler knows what is left.
func (r Recall) reply(c *Core, now time.Time) {
	if !c.life.takesCalls() {
		return
	}
	n := c.conns.byAddr[r.Gateway]
	cn := c.conns.open(n)
	if cn == nil {
		c.sendPull(now, 0)
		return
	}
	if ends := now.Add(r.Term); cn.recalled == 0 || ends.Before(cn.termEnds) {
		cn.termEnds = ends
	}
	cn.recalled = min(cn.recalled+max(r.Calls, 0), cn.idle+cn.loans)
	c.sendPull(now, c.dueBack(now, n, cn))
}

// dueBack takes recalled places back that are idle, if it is time, and returns how many they are.
func (c *Core) dueBack(now time.Time, number Conn, cn *conn) int {
	n := min(cn.recalled, cn.idle)
	if n == 0 || cn.phase != connOpen {
		return 0
	}
	if at := cn.backAt(); now.Before(at) {
		c.conns.wakeAt(at)
		return 0
	}
	c.takeBack(now, number, cn, n)
	return n
}

// backAt is when idle places go back that were recalled.
func (cn *conn) backAt() time.Time { return earliest(cn.termEnds, cn.idleSince.Add(surplusAfter)) }

// wentBack counts n places that the scheduler has again against those that it recalled.
func (cn *conn) wentBack(n int) { cn.recalled = max(0, cn.recalled-n) }

// takeBack takes n idle credits of a gateway back.
func (c *Core) takeBack(now time.Time, number Conn, cn *conn, n int) {
	if n > 0 {
		cn.takenBack = now
		c.conns.lend(now, cn, -n)
		cn.wentBack(n)
		c.emit(TakeBack{number, n})
	}
}

// takeAllBack takes all idle credits back, and returns how many they were.
func (c *Core) takeAllBack(now time.Time) int {
	all := c.conns.idle
	if all == 0 {
		return 0
	}
	for _, n := range c.conns.numbers() {
		cn := c.conns.all[n]
		c.takeBack(now, n, cn, cn.idle)
	}
	return all
}

// apply starts a call that a gateway has handed over by a credit, or declines it if the
// credit was taken back meanwhile.
func (e Called) apply(c *Core, now time.Time) {
	cn := c.conns.open(e.Conn)
	if cn == nil {
		return
	}
	if cn.used++; cn.idle == 0 {
		c.emit(Decline{e.Conn, e.Call})
		return
	}
	c.noteCall(now)
	n, a := c.calls.addAttempt(e.ID, e.Conn)
	if e.Remaining > 0 {
		a.beginBy = now.Add(e.Remaining - e.Remaining/runShare)
	}
	cn.loans++
	cn.users++
	c.conns.lend(now, cn, -1)
	c.emit(Accept{Attempt: n, Conn: e.Conn, Call: e.Call})
	c.renewIfUsedUp(now, e.Conn, cn)
	c.beginCall(now, n, a)
}

// leaveConn ends the use of a connection by an attempt. Whether the attempt's place stays
// with the gateway, if wanted, is the result.
func (c *Core) leaveConn(now time.Time, a *attempt, wanted bool) (keeps bool) {
	cn := c.conns.all[a.conn]
	if cn == nil {
		return false
	}
	cn.users--
	if a.byLoan() {
		cn.loans--
	}
	keeps = wanted && cn.phase == connOpen && !cn.retired && !c.life.draining && (cn.recalled == 0 || now.Before(cn.termEnds))
	switch {
	case keeps:
		c.conns.lend(now, cn, 1)
		if cn.recalled > 0 {
			c.conns.wakeAt(cn.backAt())
		}
	case wanted:
		cn.wentBack(1)
	}
	c.conns.observeUse(now, cn)
	return keeps
}

// claimAt claims a call at its gateway, as soon as there is a connection.
func (c *Core) claimAt(now time.Time, n Attempt, a *attempt) {
	number, cn := c.connTo(now, a.ticket.Gateway)
	a.conn = number
	cn.users++
	c.conns.observeUse(now, cn)
	claim := Claim{Attempt: n, Conn: number, Ticket: *a.ticket}
	if cn.phase == connOpen {
		c.sendClaim(claim)
		c.renewIfUsedUp(now, number, cn)
		return
	}
	cn.waiting = append(cn.waiting, claim)
}

// sendClaim sends a claim unless it was given up meanwhile.
func (c *Core) sendClaim(claim Claim) {
	if a := c.calls.inPhase(claiming, claim.Attempt); a != nil {
		a.sent = true
		c.conns.all[claim.Conn].used++
		c.emit(claim)
	}
}
