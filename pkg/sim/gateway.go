package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/table"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// Times of a gateway, as pkg/gateway has them, but that a call waits less long.
const (
	maxQueueTime = 6 * time.Second
	reofferAfter = time.Second
	reofferEvery = 250 * time.Millisecond
	reofferSoon  = 50 * time.Millisecond
	runGrace     = 2 * time.Second
	tableSize    = 4096
	// seedAfter is how long etcd may take before a scheduler is asked instead.
	seedAfter = 300 * time.Millisecond
)

// gateway is the part of a gateway that decides: the table of the product, and
// around it what its shell does.
type gateway struct {
	*node
	table *table.Table[*call]
	// calls are those in the table, in order of admission.
	calls []*call
	view  *directory
	etcd  *reader
	links []*link
	// routes is where each function's tickets go now.
	routes []string
	soon   bool
	waits  int // calls that should wait according to what was done to them
}

// call is a client's call. Answered says that nobody waits for the answer any
// more.
type call struct {
	*invocation
	answered bool
	claimed  bool
	deadline time.Time
	attempt  *attempt
}

func newGateway(n *node) *gateway {
	g := &gateway{node: n, table: table.New[*call](tableSize), routes: make([]string, len(n.world.functions))}
	g.view = newDirectory(n, g.rerouted)
	g.etcd = &reader{node: n, listed: g.view.listed, saw: g.view.saw, interrupted: func() {}, busy: func() bool { return false }}
	return g
}

func (g *gateway) boot() {
	g.view.boot()
	g.etcd.boot()
	g.after(seedAfter, g.seed)
	g.every(reofferEvery, g.reofferOverdue)
}

// died is the end of all calls that it held.
func (g *gateway) died() {
	for _, c := range g.calls {
		if !c.answered {
			g.world.ledger.answered(c.invocation, gatewayDied, 0)
		}
	}
}

// call takes a client's call.
func (g *gateway) call(fn *function, leavesAfter time.Duration) {
	now := g.now()
	in := table.Invocation[*call]{
		ID: g.world.id(now.Add(g.clock.wall)), FunctionUID: fn.uid, Token: g.world.token(),
		Admitted: now, Deadline: now.Add(maxQueueTime),
	}
	c := &call{invocation: g.world.ledger.admit(in.ID, fn, in.Token), deadline: in.Deadline}
	in.Payload = c
	if g.table.Admit(in, now) != nil {
		g.answer(c, answeredNo, 0)
		return
	}
	g.note("admits", uint64(c.number), uint64(fn.index))
	g.calls = append(g.calls, c)
	g.waits++
	g.offer(in, now)
	g.after(maxQueueTime, func() { g.tooLate(c) })
	if leavesAfter > 0 {
		g.after(leavesAfter, func() { g.clientLeft(c) })
	}
}

// offer sends a ticket to the scheduler that its function's slot is with.
func (g *gateway) offer(in table.Invocation[*call], now time.Time) {
	fn, open := in.Payload.fn, in.Payload.rides
	to, _, known := g.view.route(fn)
	if !known {
		return
	}
	if open {
		g.table.Entrust(in.ID)
		in.Payload.open = true
	}
	g.linkTo(to.Addr).send(offer{
		id: in.ID, fn: fn.index, token: in.Token, waited: now.Sub(in.Admitted),
		remain: in.Deadline.Sub(now), request: open,
	})
}

// reofferOverdue sends again the tickets that have waited for so long that a
// message may have been lost.
func (g *gateway) reofferOverdue() {
	before := g.now().Add(-reofferAfter)
	g.reoffer(func(_ *call, offered time.Time) bool { return offered.Before(before) })
}

// reoffer sends again the tickets that wait and are due.
func (g *gateway) reoffer(isDue func(c *call, offered time.Time) bool) {
	now := g.now()
	due := g.table.Due(now, isDue)
	// The table does not promise an order.
	slices.SortFunc(due, func(a, b table.Invocation[*call]) int { return a.Payload.number - b.Payload.number })
	for _, in := range due {
		if now.After(in.Deadline) {
			g.tooLate(in.Payload)
		} else {
			g.offer(in, now)
		}
	}
}

// rerouted offers again at once what waits at a scheduler that is not the
// function's any more.
func (g *gateway) rerouted() {
	moved := make([]bool, len(g.routes))
	for i, fn := range g.world.functions {
		to, _, known := g.view.route(fn)
		if !known || to.Addr == g.routes[i] {
			continue
		}
		g.routes[i], moved[i] = to.Addr, true
	}
	if slices.Contains(moved, true) {
		g.reoffer(func(c *call, _ time.Time) bool { return moved[c.fn.index] })
	}
}

// refusedBy handles a scheduler's refusal.
func (g *gateway) refusedBy(r refusal) {
	c := g.find(r.id)
	if c == nil {
		return
	}
	g.note("is refused", uint64(c.number), uint64(len(r.reason)))
	switch r.reason {
	case invoke.RefusedUnknownFunction, invoke.RefusedNotOwner:
		g.table.Unoffer(c.id)
		if !g.soon {
			g.soon = true
			g.after(reofferSoon, func() {
				g.soon = false
				g.reofferOverdue()
			})
		}
	default:
		if _, executed, waited := g.table.Withdraw(c.id); waited {
			g.waits--
			g.forget(c)
			g.answer(c, unserved(executed), 0)
		}
	}
}

func (g *gateway) find(id invoke.ID) *call {
	for _, c := range g.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

// tooLate answers a call that has waited for too long, if it still waits.
func (g *gateway) tooLate(c *call) {
	if c.claimed || g.now().Before(c.deadline) {
		return
	}
	if executed, waited := g.leaveQueue(c); waited {
		g.answer(c, unserved(executed), 0)
	}
}

// unserved is the answer to a call that was not served.
func unserved(executed invoke.Executed) answer {
	if executed == invoke.ExecutedNo {
		return answeredNo
	}
	return answeredMaybe
}

// clientLeft is the end of a client's patience.
func (g *gateway) clientLeft(c *call) {
	if c.answered {
		return
	}
	g.answerAs(c, clientLeft, 0)
	if g.world.config.Mutation == ForgottenCancel {
		return
	}
	if c.claimed {
		c.attempt.cancel()
		return
	}
	g.leaveQueue(c)
}

// leaveQueue makes sure that a call does not wait any more. It tells whether it did,
// and whether it may have run.
func (g *gateway) leaveQueue(c *call) (executed invoke.Executed, waited bool) {
	if _, executed, waited = g.table.Withdraw(c.id); waited {
		g.waits--
		g.forget(c)
		g.withdraw(c)
	}
	return executed, waited
}

// withdraw tells the scheduler that nobody wants a ticket any more.
func (g *gateway) withdraw(c *call) {
	if to, _, known := g.view.route(c.fn); known {
		g.linkTo(to.Addr).send(withdrawal{id: c.id, fn: c.fn.index})
	}
}

// answer tells a client what came of its call.
func (g *gateway) answer(c *call, a answer, run int) {
	if c.answered {
		return
	}
	g.answerAs(c, a, run)
}

func (g *gateway) answerAs(c *call, a answer, run int) {
	c.answered = true
	g.world.ledger.answered(c.invocation, a, run)
}

// forget drops a call that is out of the table.
func (g *gateway) forget(c *call) {
	if i := slices.Index(g.calls, c); i >= 0 {
		g.calls = slices.Delete(g.calls, i, i+1)
	}
}

// audit compares the table with what was done to it.
func (g *gateway) audit() Rule {
	switch {
	case g.table.Len() != len(g.calls):
		return RuleTableIsWhole
	case g.table.Queued() != g.waits:
		return RuleUnclaimedWaits
	}
	return g.view.audit()
}

// late says whether a client waits for longer than anybody may. While a gateway
// stands still nobody can be answered.
func (g *gateway) late() *call {
	now := g.now()
	for _, c := range g.calls {
		by := c.deadline
		if c.claimed {
			by = c.attempt.runBy
		}
		if !c.answered && now.After(by.Add(overdue)) {
			return c
		}
	}
	return nil
}
