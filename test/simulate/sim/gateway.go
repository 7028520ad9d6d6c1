package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// maxQueueTime is how long a call waits while there are faults: less long than by default.
const maxQueueTime = 6 * time.Second

// gateway is a gateway: the lives of its calls are the product's, and around them is what
// its shell does.
type gateway struct {
	*node
	// calls are those that wait or run, in order of admission.
	calls []*call
	view  *directory
	etcd  *reader
	links []*link
	// pools are the product's, of each revision that has calls or loans here.
	pools []*pool
	// agents are the open connections of instances, and broken those that broke with calls of
	// which it is not known whether they came.
	agents, broken []*agentConn
	// routes is where each function's tickets go now.
	routes []string
	soon   bool
	// routed is when one of them changed last, in the world's time.
	routed time.Duration
	// entries are the functions that it knows, by index, and gone is when it last heard that
	// one was deleted.
	entries []*rollout.Entry
	gone    []time.Time
	// lots are the numbers by which each function's calls are parted.
	lots []uint32
}

// call is a client's call.
type call struct {
	*callRecord
	life *core.Invocation
	// of is the UID of its function.
	of      string
	attempt *attempt  // the last one
	offered time.Time // when its ticket was sent last
	queued  time.Time // since when it waits, if it does
	// pool is the one in which it waits.
	pool    *pool
	waiting core.Waiting[*call]
	// admitted and waits are when it was admitted and since when it waits, in the world's time.
	admitted, waits time.Duration
	// mayWait is how long it may wait, and stopsWaiting until when. granted is when an instance got it last.
	mayWait               time.Duration
	stopsWaiting, granted time.Time
	// overtaken is when a newer call of the same revision first overtook it by a loan of
	// another gateway.
	overtaken map[*gateway]time.Duration
}

func newGateway(n *node) *gateway {
	g := &gateway{node: n, routes: make([]string, len(n.world.functions))}
	for _, fn := range n.world.functions {
		g.entries = append(g.entries, fn.entry)
		g.lots = append(g.lots, n.world.rng.Uint32())
	}
	g.gone = make([]time.Time, len(g.entries))
	g.view = newDirectory(n, g.rerouted)
	g.etcd = g.view.newReader()
	return g
}

func (g *gateway) boot() {
	g.view.boot()
	g.etcd.boot()
	g.after(ownership.SeedAfter, g.seed)
	g.every(core.ReofferEvery, g.reofferOverdue)
	g.every(reportEvery, g.sweep)
}

// died is the end of all calls that it held.
func (g *gateway) died() {
	for _, c := range g.calls {
		if c.answer == unanswered {
			g.world.truth.answered(c.callRecord, gatewayDied, 0)
		}
	}
}

// call takes a client's call of a function of that name, which waits for an instance for
// that long. It returns the record of the call; nil if there is no such function.
func (g *gateway) call(name *function, waits, leavesAfter time.Duration) *callRecord {
	now, fn := g.now(), g.pick(name)
	if fn == nil {
		g.note("knows no such function", uint64(name.index), 0)
		return nil
	}
	token := g.world.token()
	c := &call{
		callRecord: g.world.truth.admit(g.world.id(now), fn, token),
		of:         g.entries[name.index].UID(),
		life: core.New(core.Spec{
			Admitted: now, MaxQueueTime: waits, Timeout: fn.timeout, CancelOnDisconnect: true,
			MayRepeat: fn.idempotent,
		}),
		queued: now, admitted: g.world.now, waits: g.world.now, mayWait: waits, stopsWaiting: now.Add(waits),
	}
	c.waiting = core.Waiting[*call]{Call: c, Since: now}
	g.note("admits", uint64(c.number), uint64(fn.index))
	g.calls = append(g.calls, c)
	g.carryOut(c, c.life.Queue(token, now))
	g.after(waits, func() { g.carryOut(c, c.life.QueueTimeout(g.now())) })
	if leavesAfter > 0 {
		g.after(leavesAfter, func() { g.clientLeft(c) })
	}
	return c.callRecord
}

// carryOut does what was decided about a call.
func (g *gateway) carryOut(c *call, d core.Decision) {
	if d.End {
		g.forget(c)
		g.dequeue(c)
	}
	if d.Fail {
		g.answer(c, unserved(d.Failure.Executed), 0)
	}
	if d.CancelTicket {
		g.cancelTicket(c)
	}
	if d.Wait {
		g.enqueue(c)
	}
	if d.Offer {
		g.offer(c)
	}
	if d.Cancel {
		c.attempt.cancel()
	}
	if d.GiveUp && c.attempt.waitsLong {
		c.attempt.askToGiveUp()
	}
}

// offer sends a ticket to the scheduler that its function's slot is with.
func (g *gateway) offer(c *call) {
	c.offered = g.now()
	ticket, _ := c.life.Ticket(c.offered)
	to, _, known := g.view.route(c.fn.function)
	if !known {
		return
	}
	l := g.linkTo(to.Addr)
	if l.open {
		if c.letIn && !ticket.Again && !g.world.config.Adversarial {
			g.world.truth.broken(c.callRecord, RuleAdmittedOnce)
		}
		c.life.TicketSent()
	}
	l.send(offer{
		id: c.id, fn: c.fn, token: ticket.Token, waited: ticket.Waited, remain: ticket.Remaining,
		lent: !c.fn.limited(), again: ticket.Again,
	})
}

// reofferOverdue sends again the tickets that have waited for so long that a
// message may have been lost.
func (g *gateway) reofferOverdue() { g.reoffer(func(*call) bool { return false }) }

// reoffer sends again the tickets that wait and are due, of moved calls all.
func (g *gateway) reoffer(moved func(c *call) bool) {
	now := g.now()
	for _, c := range slices.Clone(g.calls) {
		seen := core.Observed{Moved: moved(c), Deleted: g.deleted(c)}
		if !c.life.Due(now, seen.Moved) || !seen.Deleted && g.reassign(c) {
			continue
		}
		g.carryOut(c, c.life.Audit(now, seen, invocation.Token{}))
	}
}

// rerouted offers again at once what waits at a scheduler that is not the function's any more,
// or for one to be named.
func (g *gateway) rerouted() {
	moved := make([]bool, len(g.routes))
	for i, fn := range g.world.functions {
		to, _, _ := g.view.route(fn)
		if to.Addr == g.routes[i] {
			continue
		}
		g.routes[i], moved[i] = to.Addr, true
		g.routed = g.world.now
	}
	if slices.Contains(moved, true) {
		g.reoffer(func(c *call) bool { return moved[c.fn.index] })
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
	case invocation.RefusedUnknownFunction, invocation.RefusedNotOwner:
		c.life.NotQueued(r.admitted)
		if !g.soon {
			g.soon = true
			g.after(core.ReofferSoon, func() {
				g.soon = false
				g.reofferOverdue()
			})
		}
	default:
		g.carryOut(c, c.life.Refuse())
	}
}

func (g *gateway) find(id invocation.ID) *call {
	for _, c := range g.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

// unserved is the answer to a call that was not served.
func unserved(executed invocation.Executed) answer {
	if executed == invocation.ExecutedNo {
		return answeredNo
	}
	return answeredMaybe
}

// clientLeft is the end of a client's patience.
func (g *gateway) clientLeft(c *call) {
	if c.life.Answer().Final() {
		return
	}
	g.answer(c, clientLeft, 0)
	g.carryOut(c, c.life.ClientLeft())
}

// cancelTicket tells the scheduler that nobody wants a ticket any more.
func (g *gateway) cancelTicket(c *call) {
	if to, _, known := g.view.route(c.fn.function); known {
		g.linkTo(to.Addr).send(cancellation{id: c.id, fn: c.fn})
	}
}

// answer tells a client what came of its call.
func (g *gateway) answer(c *call, a answer, run int) { g.world.truth.answered(c.callRecord, a, run) }

// forget drops a call that is out of the table.
func (g *gateway) forget(c *call) {
	if i := slices.Index(g.calls, c); i >= 0 {
		g.calls = slices.Delete(g.calls, i, i+1)
	}
}

// audit looks at the lives of all calls.
func (g *gateway) audit() Rule {
	for _, c := range g.calls {
		switch {
		case c.life.Phase() == core.Ended:
			return RuleEndedIsForgotten
		case c.life.Phase() == core.Queued && c.life.Answer() != core.AnswerNone:
			return RuleUnansweredWaits
		case c.starts > 0 && c.wouldSayNo():
			return RuleNoIsTrue
		}
	}
	return cmp.Or(g.auditLongWaits(), g.view.audit())
}

// wouldSayNo tells whether its client would be told that it did not run if it were refused
// now.
func (c *call) wouldSayNo() bool {
	refused := *c.life
	d := refused.Refuse()
	return d.Fail && d.Failure.Executed == invocation.ExecutedNo
}

// answerBy is when its client has an answer at the latest, unless it waits again: when it stops waiting, or when
// the instance that has it must have ended.
func (c *call) answerBy() time.Time {
	if c.used {
		return c.granted.Add(c.fn.timeout + core.RunGrace)
	}
	return c.stopsWaiting
}

// overdue looks for a client that waits for longer than anybody may, and for a ticket
// that was not offered again for so long. A gateway that stands still can do neither.
func (g *gateway) overdue() {
	now, soon := g.now(), core.ReofferAfter+core.ReofferEvery+overdue
	waiting := make(map[*unit]int)
	for _, c := range g.calls {
		asked := core.AskAfter + reportEvery + overdue
		if c.life.Phase() == core.Queued {
			if waiting[c.fn]++; waiting[c.fn] > core.AskFirst {
				asked += core.AskAllAfter - core.AskAfter
			}
		}
		switch {
		case c.answer == unanswered && now.After(c.answerBy().Add(overdue)):
			g.world.truth.broken(c.callRecord, RuleInTime)
		case c.life.Phase() == core.Queued && c.offered.Before(c.queued) && now.After(c.queued.Add(asked)):
			g.world.truth.broken(c.callRecord, RuleAsksInTime)
		case c.life.Phase() == core.Queued && now.After(maxTime(c.offered, c.queued).Add(soon)):
			g.world.truth.broken(c.callRecord, RuleOfferedAgain)
		case c.life.Phase() == core.Queued && g.deleted(c) && now.After(g.gone[c.fn.index].Add(soon)) && now.After(c.queued.Add(soon)):
			g.world.truth.broken(c.callRecord, RuleDeletedAnswered)
		}
	}
}

// follows takes note of a function as it is, or that it was deleted.
func (g *gateway) follows(f *function, e *rollout.Entry) {
	before := g.entries[f.index]
	g.entries[f.index] = e
	if before != nil && (e == nil || e.UID() != before.UID()) {
		g.gone[f.index] = g.now()
	}
}

// pick is the unit for a call; nil if the function is not known, or cannot be called yet.
func (g *gateway) pick(f *function) *unit {
	e := g.entries[f.index]
	if e == nil {
		return nil
	}
	g.lots[f.index] += rollout.DrawStep
	to := e.Pick(g.lots[f.index])
	if to == nil {
		g.world.violate(RuleSomebodyIsCalled, 0)
		return nil
	}
	u := f.unit(to)
	if u == nil || !u.proven && e.Function.Status.LatestReadyRevisionName != "" {
		g.world.violate(RuleProvenFirst, 0)
	}
	return u
}

// deleted tells whether a call's function is gone.
func (g *gateway) deleted(c *call) bool {
	e := g.entries[c.fn.index]
	return e == nil || e.UID() != c.of
}

// reassign lets a call that waits for a revision which is no unit any more wait for another
// one, and tells whether anything came of it.
func (g *gateway) reassign(c *call) bool {
	if has(g.entries[c.fn.index], c.fn) {
		return false
	}
	to := g.pick(c.fn.function)
	if to == nil {
		return false
	}
	now, token := g.now(), g.world.token()
	waits := c.life.Phase() == core.Queued && now.Before(c.answerBy())
	d := c.life.Move(token, to.timeout, now)
	if d.Wait != waits {
		g.world.truth.broken(c.callRecord, RuleWaitsOn)
	}
	if d.Wait {
		g.note("moves a call", uint64(c.number), 0)
		g.dequeue(c)
		g.cancelTicket(c)
		c.queued, c.waits, c.overtaken = now, g.world.now, nil
		g.world.truth.moved(c.callRecord, to, token)
	}
	g.carryOut(c, d)
	return d != core.Decision{}
}
