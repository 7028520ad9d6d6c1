package cluster

import (
	"fmt"
	"time"

	gateway "github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
	agent "github.com/windlass-dev/windlass/pkg/podagent/core"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// gatewayEnd is the shell of a gateway in virtual time. Its pools decide.
type gatewayEnd struct {
	*lending
	name   string
	stream uint64
	pools  map[*function]*pool
	// asked are the calls that wait and have sent a ticket.
	asked waitingCalls
	// phase is when in each Config.ReportEvery it sweeps over the touched pools: those with something to
	// report, or with calls that wait. sweeping says that a sweep is planned.
	phase    time.Duration
	touched  []*pool
	sweeping bool
	// freeAt is when its processor is done with the calls that have come.
	freeAt time.Duration
}

// pool is the product's pool of a function at a gateway, and the last report on it.
type pool struct {
	gateway.Pool[*call, *connection]
	of       *gatewayEnd
	function *function
	sent     gateway.LoanReport
	touched  bool
}

// place is where a call waits at its gateway, and how it got an instance.
type place struct {
	gateway.Waiting[*call]
	pool *pool
	// asked says that its ticket was sent, and byLoan that it was handed over without one.
	asked, byLoan bool
	// by is how it came to its instance, and attempt its number there.
	by      *connection
	attempt agent.Attempt
}

func newGatewayEnd(l *lending, number int) *gatewayEnd {
	return &gatewayEnd{
		lending: l, name: fmt.Sprintf("gateway-%03d", number), stream: uint64(number) + 1,
		pools: make(map[*function]*pool), asked: make(waitingCalls),
		phase: time.Duration(l.lots.Int64N(int64(l.world.config.ReportEvery))),
	}
}

func (g *gatewayEnd) poolOf(f *function) *pool {
	p := g.pools[f]
	if p == nil {
		p = &pool{of: g, function: f}
		g.pools[f] = p
	}
	return p
}

// receive takes a call, once the gateway's processor has done with those before it.
func (g *gatewayEnd) receive(c *call) {
	g.freeAt = max(g.now, g.freeAt) + g.world.config.GatewayWork
	g.after(g.freeAt-g.now, message(func() { g.enqueue(c) }))
}

// enqueue lets a call wait, and hands it over at once if an instance has lent a pull.
func (g *gatewayEnd) enqueue(c *call) {
	if c.over {
		return // it has waited for the processor for too long
	}
	c.place = &place{pool: g.poolOf(c.function), Waiting: gateway.Waiting[*call]{Call: c, Since: instant(g.now)}}
	c.place.pool.add(c)
}

func (p *pool) add(c *call) {
	ask := p.Add(&c.place.Waiting, instant(p.of.now), false)
	p.handOver()
	if ask && c.instance == nil {
		p.ask(c)
	}
}

// handOver hands calls to lent pulls for as long as there are both.
func (p *pool) handOver() {
	p.touch()
	for w, by, ok := p.Next(); ok; w, by, ok = p.Next() {
		p.Handed(w, instant(p.of.now))
		by.Instance.hand(w.Call)
	}
	for _, c := range p.Stranded() {
		p.ask(c)
	}
}

// ask sends the ticket of a call that waits.
func (p *pool) ask(c *call) {
	g := p.of
	c.place.asked = true
	g.result.Gateways.Tickets++
	g.asked[c.id] = c
	t := invocation.Ticket{ID: c.id, Gateway: g.name, Arrived: c.place.Since, Deadline: instant(g.deadline(c))}
	g.sendToScheduler(func() { g.offer(p.function, t) })
}

// forget takes a call out whose caller has left.
func (p *pool) forget(c *call) {
	p.Remove(&c.place.Waiting)
	p.cancelTicket(c)
	p.touch()
}

// cancelTicket tells the scheduler that a call no longer waits, if it has its ticket.
func (p *pool) cancelTicket(c *call) {
	g := p.of
	if g.asked.take(c.id) != nil {
		g.sendToScheduler(func() { g.scheduler.step(p.function, &core.CallCancelled{ID: c.id}) })
	}
}

// refused refuses a call whose ticket was refused, if it still waits.
func (g *gatewayEnd) refused(id invocation.ID) {
	if c := g.asked.take(id); c != nil {
		c.place.pool.Remove(&c.place.Waiting)
		c.place.pool.touch()
		g.refuse(c)
	}
}

// touch lets the next sweep look at a pool.
func (p *pool) touch() {
	if p.touched {
		return
	}
	p.touched = true
	g := p.of
	g.touched = append(g.touched, p)
	if !g.sweeping {
		g.sweeping = true
		every := g.world.config.ReportEvery
		g.agenda.plan((g.now-g.phase+every).Truncate(every)+g.phase, (*gatewaySweeps)(g))
	}
}

// gatewaySweeps is when a gateway asks for what has waited for long, and reports.
type gatewaySweeps gatewayEnd

func (e *gatewaySweeps) run(*world) {
	g := (*gatewayEnd)(e)
	touched := g.touched
	g.touched, g.sweeping = nil, false
	for _, p := range touched {
		p.touched = false
		for _, c := range p.Overdue(instant(g.now)) {
			p.ask(c)
		}
		p.report()
		if p.Report().Waiting > 0 {
			p.touch()
		}
	}
}

// report reports on the loans if anything has changed.
func (p *pool) report() {
	g, r := p.of, p.Report()
	if r == p.sent {
		return
	}
	p.sent = r
	g.sendToScheduler(func() {
		g.scheduler.step(p.function, &core.Reported{Gateway: g.name, Stream: g.stream, Report: core.LoanReport(r)})
	})
}

// connection is what a gateway and an instance have with each other.
type connection struct {
	*pool
	in *instance
	// number is its name at the instance.
	number agent.Conn
	lender *gateway.Lender[*connection]
	// handed are the calls by loans that the instance has not begun, and last is the number of
	// the last one.
	handed map[uint32]*call
	last   uint32
}

func newConnection(p *pool, in *instance, number agent.Conn) *connection {
	c := &connection{pool: p, in: in, number: number, handed: make(map[uint32]*call)}
	c.lender = gateway.NewLender(in.cid, c)
	return c
}

// hand hands a call to the instance by a credit.
func (n *connection) hand(c *call) {
	n.cancelTicket(c)
	c.instance, c.place.by, c.place.byLoan = n.in, n, true
	n.of.counters.waiting--
	n.of.result.Gateways.ByLoan++
	n.last++
	n.handed[n.last] = c
	called := agent.Called{Conn: n.number, Call: n.last, ID: c.id}
	n.of.send(func() { n.in.agent.called(n, called) })
}

// declined takes back a call that the instance did not begin, because its credit was taken back
// meanwhile. The call waits again at its place.
func (n *connection) declined(number uint32) {
	c := n.handed[number]
	delete(n.handed, number)
	n.Ended(n.lender, true)
	c.instance, c.place.byLoan, c.place.asked = nil, false, false
	n.of.counters.waiting++
	n.of.result.Gateways.ByLoan--
	n.of.result.Gateways.Declined++
	if n.of.deadline(c) <= n.of.now {
		(*callGivenUp)(c).run(n.of.world)
	} else {
		n.add(c)
	}
	n.handOver()
}

// claim gives the call of a ticket to the instance, if it still waits: the answer.
func (n *connection) claim(a agent.Claim) {
	g := n.of
	c := g.asked.take(a.Ticket.ID)
	if c == nil {
		g.send(func() { n.in.agent.feed(agent.Refused{Attempt: a.Attempt}) })
		return
	}
	c.instance, c.place.by = n.in, n
	g.counters.waiting--
	n.Began(n.lender)
	for _, other := range n.Taken(&c.place.Waiting) {
		n.ask(other)
	}
	n.touch()
	g.send(func() { n.in.agent.granted(c, a.Attempt) })
}

// delivered is the end of a call at the instance. Its place goes to the next call, if it stays.
func (n *connection) delivered(c *call, keeps bool) {
	if c.place.byLoan {
		n.CountExecution(c.took, c.coreWait)
	}
	n.Ended(n.lender, keeps)
	n.handOver()
}

// lend gives credits, or takes them back if credits is negative.
func (n *connection) lend(credits int) {
	n.Lend(n.lender, credits)
	n.handOver()
}

// closed is the end of the connection, when no call runs by it.
func (n *connection) closed() {
	n.Gone(n.lender)
	n.handOver()
}
