package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// reportEvery is how often gateways report on loans, and look for calls that have waited for
// long without a ticket.
const reportEvery = 100 * time.Millisecond

// pool is what a gateway knows of the loans of one revision: the product's, and what of it
// schedulers have heard.
type pool struct {
	fn   *unit
	core core.Pool[*call, *agentConn]
	// sent is the last report, by a stream. base is what the reports on it leave out, because
	// earlier streams had it.
	sent, base core.LoanReport
	stream     *stream
}

// poolOf is the pool of a unit.
func (g *gateway) poolOf(fn *unit) *pool {
	for _, p := range g.pools {
		if p.fn == fn {
			return p
		}
	}
	p := &pool{fn: fn}
	g.pools = append(g.pools, p)
	return p
}

// enqueue lets a call wait, and hands it over at once if an instance has lent a pull.
func (g *gateway) enqueue(c *call) {
	p := g.poolOf(c.fn)
	c.pool = p
	g.mayOvertake(c)
	if a := c.attempt; a != nil && a.pool == p {
		p.core.GivenUp(&a.longWait)
	}
	ask := p.core.Add(&c.waiting, g.now(), c.fn.limited())
	g.handOver(p)
	if c.life.Phase() == core.Queued && ask {
		g.ask(c)
	}
}

// dequeue takes a call out of its pool that no longer waits.
func (g *gateway) dequeue(c *call) {
	if c.pool != nil {
		c.pool.core.Remove(&c.waiting)
		c.pool = nil
	}
}

// taken takes a call out of its pool that an instance has claimed with a ticket. Others that
// wait ask for the next such instance.
func (g *gateway) taken(c *call) {
	p := c.pool
	if p == nil {
		return
	}
	c.pool = nil
	for _, other := range p.core.Taken(&c.waiting) {
		g.ask(other)
	}
}

// ask sends a waiting call's first ticket.
func (g *gateway) ask(c *call) { g.carryOut(c, c.life.Ask(g.now())) }

// handOver hands calls to lent pulls for as long as there are both. A gateway that stops gives the rest back.
func (g *gateway) handOver(p *pool) {
	for {
		w, by, ok := p.core.Next()
		if !ok {
			break
		}
		switch {
		case by.Instance.ended:
			p.core.PutBack(w, by)
		case !by.Instance.hand(w.Call):
			w.Call.pool = nil
			p.core.Refund(by)
		default:
			w.Call.pool = nil
			p.core.Handed(w, g.now())
		}
	}
	g.requestGiveUps(p)
	if g.draining {
		for from, n, ok := p.core.NextUnused(); ok; from, n, ok = p.core.NextUnused() {
			from.Instance.stream.send(g.node, returnFrame{n})
		}
	}
	for _, c := range p.core.Stranded() {
		g.ask(c)
	}
}

// sweep looks for calls that have waited for long without a ticket, and reports to schedulers.
func (g *gateway) sweep() {
	for _, p := range slices.Clone(g.pools) {
		ask, unused := p.core.Overdue(g.now()), p.core.Unused()
		for _, c := range ask {
			g.ask(c)
		}
		g.report(p) // of an unused one, too: an owner that is back may know an old report
		if unused && p.core.Report() == p.sent && !has(g.entries[p.fn.index], p.fn) {
			// Until then it knows what it has reported: numbers of one stream never fall.
			g.pools = slices.DeleteFunc(g.pools, func(other *pool) bool { return other == p })
		}
	}
}

// report reports on a pool to its scheduler if anything has changed, or the stream is another.
func (g *gateway) report(p *pool) {
	to, _, known := g.view.route(p.fn.function)
	if !known {
		return
	}
	l, r := g.linkTo(to.Addr), p.core.Report()
	switch {
	case !l.open:
		return
	case p.stream != l.stream:
		p.stream, p.base = l.stream, p.sent
	case r == p.sent:
		return
	}
	p.sent = r
	sent := r
	sent.Served -= p.base.Served
	sent.Executions -= p.base.Executions
	sent.ExecutionTime -= p.base.ExecutionTime
	l.send(loanReport{p.fn, sent})
}

// returnLoans gives all credits back, before the gateway stops.
func (g *gateway) returnLoans() {
	for _, p := range slices.Clone(g.pools) {
		g.handOver(p)
	}
}

// precedes tells whether an instance gets a call before another one: those of calm nodes come
// first.
func precedes(busy bool, cid invocation.CID, otherBusy bool, other invocation.CID) bool {
	return busy == otherBusy && cid < other || !busy && otherBusy
}

// mayHand looks at a call that is handed over by a loan.
func (g *gateway) mayHand(c *call, to *agentConn) {
	for _, other := range g.agents {
		if other.in == to.in && precedes(other.nodeBusy, other.cid, to.nodeBusy, to.cid) && other.lender.Credits() > 0 {
			g.world.truth.broken(c.callRecord, RuleFirstOfLenders)
		}
	}
	for _, other := range g.calls {
		if other.fn == c.fn && other.life.Phase() == core.Queued && other.waiting.Since.Before(c.waiting.Since) {
			g.world.truth.broken(c.callRecord, RuleOldestOfGateway)
		}
	}
	g.world.overtakes(g, c)
	g.world.mayBeAlone(c, to.cid)
}

// maxTime is the later of two times.
func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
