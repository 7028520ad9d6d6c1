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

// tellStalled tells the gateway whether a call waits for a core.
func (a *agent) tellStalled(e core.TellStalled) {
	t := a.attemptOf(e.Attempt)
	t.stalls, t.said = e.Stalls, t.said || e.Stalls
	t.conn.send(stalledFrame{call: t.number, stalls: e.Stalls})
}

// mayBegin looks at whether a call by a loan has enough time left, and whether its gateway knows that it
// does not stall. An instance that stood still meanwhile may find its core before the time to say so.
func (a *agent) mayBegin(t *agentAttempt) {
	if !t.came.IsZero() && !a.now().Before(t.came.Add(t.granted.remain*7/8)) {
		a.world.violate(RuleBeginsInTime, a.world.truth.byID[t.id].number)
	}
	byLoan, waited := t.number%2 == 0, t.coreWait > invocation.LongCoreWait+soon
	if byLoan && (t.stalls || waited && !t.said && a.turned < a.nodeAgent.asked) {
		a.world.violate(RuleSaysItStalls, a.world.truth.byID[t.id].number)
	}
}

// stall notes whether a call waits for a core.
func (a *attempt) stall(stalls bool) {
	if a.stalls = stalls; stalls {
		a.pool.core.Stall(&a.stalled)
		if a.call.life.Answer().Final() {
			a.askToGiveUp()
		}
	} else {
		a.pool.core.Unstall(&a.stalled)
	}
	a.conn.gateway.handOver(a.pool)
}

// askForStalled asks busy nodes for calls that have a place on a calm node.
func (g *gateway) askForStalled(p *pool) {
	for s, ok := p.core.NextStalled(); ok; s, ok = p.core.NextStalled() {
		c := s.At.Instance
		a := c.attempt(int(s.Number))
		if a == nil || !a.stalls || !c.nodeBusy || s.To.Instance.nodeBusy || s.To.Instance.ended {
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
	to := a.stalled.To
	token := g.world.token()
	d, _ := a.call.life.GiveUp(a.number, g.now(), token)
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

// auditStalled looks for a call that waits for a core beside an instance that has one.
func (g *gateway) auditStalled() Rule {
	for _, c := range g.agents {
		for _, a := range c.running {
			if !a.stalls || !c.nodeBusy || a.stalled.To != nil {
				continue
			}
			for _, other := range g.agents {
				if other.in == c.in && !other.nodeBusy && other.lender.Credits() > 0 && !g.waits(c.in) {
					return RuleNobodyStalls
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
