package sim

import (
	"time"

	gatewaycore "github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// This file has what happens to calls that came by a loan and wait for a core of a busy node.

// soon is how much later than planned an instance may notice the time.
const soon = 2 * time.Millisecond

// tellWait tells the gateway whether a call waits for a core.
func (a *agent) tellWait(e core.TellWait) {
	t := a.attemptOf(e.Attempt)
	t.waitsLong, t.said = e.Waits, t.said || e.Waits
	t.conn.send(longWaitFrame{call: t.number, waits: e.Waits})
}

// mayBegin looks at whether a call by a loan has enough time left, and whether its gateway knows that it
// does not wait. An instance that stood still meanwhile may find its core before the time to say so.
func (a *agent) mayBegin(t *agentAttempt) {
	if !t.came.IsZero() && !a.now().Before(t.came.Add(t.granted.remain*7/8)) {
		a.world.violate(RuleBeginsInTime, a.world.truth.byID[t.id].number)
	}
	byLoan, waited := t.number%2 == 0, t.coreWait > invocation.LongCoreWait+soon
	if byLoan && (t.waitsLong || waited && !t.said && a.turned < a.nodeAgent.asked) {
		a.world.violate(RuleSaysItWaits, a.world.truth.byID[t.id].number)
	}
}

// onLongWait notes whether a call waits for a core.
func (a *attempt) onLongWait(waits bool) {
	if a.waitsLong = waits; waits {
		a.pool.core.BeginWait(&a.longWait)
		if a.call.life.Answer().Final() {
			a.askToGiveUp()
		}
	} else {
		a.pool.core.EndWait(&a.longWait)
	}
	a.conn.gateway.handOver(a.pool)
}

// requestGiveUps asks instances of busy nodes to give up calls for which a calm one has a credit.
func (g *gateway) requestGiveUps(p *pool) {
	for w, ok := p.core.NextLongWait(); ok; w, ok = p.core.NextLongWait() {
		c := w.At.Instance
		a := c.attempt(int(w.Number))
		if a == nil || !a.waitsLong || !c.nodeBusy || w.To.Instance.nodeBusy || w.To.Instance.ended {
			g.world.violate(RuleGoesToCalmNode, 0)
			return
		}
		g.note("asks for a call", uint64(a.call.number), uint64(a.number))
		a.askToGiveUp()
	}
}

// askToGiveUp asks the instance for the call.
func (a *attempt) askToGiveUp() { a.conn.stream.send(a.conn.gateway.node, giveUpFrame{a.wire}) }

// leavesBusyNode queues a call again that an instance gave up while it waited for a core.
func (a *attempt) leavesBusyNode() {
	g, in := a.conn.gateway, a.call.callRecord
	to := a.longWait.To
	now, token := g.now(), g.world.token()
	d, _ := a.call.life.GiveUp(a.number, now, token)
	if d.Wait {
		a.call.stopsWaiting = a.call.stopsWaiting.Add(now.Sub(a.call.granted))
	}
	a.requeue(d, token, true)
	switch {
	case !d.Wait || to == nil:
	case a.call.attempt != a && a.call.attempt.conn == a.conn:
		g.world.truth.broken(in, RuleGivenUpGoesOn)
	case a.call.attempt != a:
		g.world.counts.GivenUp++
	case a.call.pool == nil || to.Credits() > 0:
		g.world.truth.broken(in, RuleGivenUpGoesOn)
	}
}

// auditLongWaits looks for a call that waits for a core beside an instance that has one.
func (g *gateway) auditLongWaits() Rule {
	for _, c := range g.agents {
		for _, a := range c.running {
			if !a.waitsLong || !c.nodeBusy || a.longWait.To != nil {
				continue
			}
			for _, other := range g.agents {
				if other.in == c.in && !other.nodeBusy && other.lender.Credits() > 0 && !g.waits(c.in) {
					return RuleNoLongWait
				}
			}
		}
	}
	return ""
}

// waits tells whether a call waits for an instance in a pool.
func (g *gateway) waits(p *pool) bool {
	for _, c := range g.calls {
		if c.pool == p && c.life.Phase() == gatewaycore.Queued {
			return true
		}
	}
	return false
}
