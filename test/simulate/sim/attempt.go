package sim

import (
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// attempt is the gateway's end of an instance's claim and of what follows.
type attempt struct {
	gateway *gateway
	stream  *stream
	call    *call // nil until it is granted
	number  int
}

func (a *attempt) opened() {}

func (a *attempt) take(m any) {
	switch m := m.(type) {
	case claim:
		a.claim(m)
	case release:
		a.release()
	case result:
		a.result(m)
	}
}

func (a *attempt) closed(closing) {
	if a.call != nil {
		a.lose()
	}
}

// claim grants a call or refuses it.
func (a *attempt) claim(m claim) {
	g := a.gateway
	c := g.find(m.id)
	if c == nil {
		g.refuseClaim(a)
		return
	}
	grant, err := c.life.Claim(g.now(), m.token, m.cid)
	if err != nil {
		g.refuseClaim(a)
		return
	}
	c.attempt = a
	a.call, a.number = c, grant.Attempt
	g.note("grants", uint64(c.number), uint64(a.number))
	g.world.truth.grant(c.callRecord, a.number, m.token, m.cid)
	g.world.truth.wanted(c.callRecord)
	if grant.CancelTicket {
		g.cancelTicket(c)
	}
	g.after(grant.RunBy.Sub(g.now()), func() { g.carryOut(c, c.life.RunTimeout(a.number, g.now())) })
	a.stream.send(g.node, granted{attempt: a.number, remain: c.fn.timeout})
}

func (g *gateway) refuseClaim(a *attempt) {
	a.stream.send(g.node, claimRefused{})
	a.stream.close(g.node)
}

// cancel tells the instance to end the call.
func (a *attempt) cancel() { a.stream.send(a.gateway.node, cancel{}) }

// result is the end of the call.
func (a *attempt) result(m result) {
	if a.call == nil {
		return
	}
	g, c := a.gateway, a.call
	if m.run == 0 {
		g.carryOut(c, c.life.Fail(a.number))
	} else if d, err := c.life.Begin(a.number, true); err == nil {
		c.life.Wrote(true)
		g.carryOut(c, d)
		g.answer(c, answeredOK, m.run)
	} else {
		g.carryOut(c, d)
	}
	a.stream.close(g.node)
}

// release queues the call again, for the function has seen nothing of it.
func (a *attempt) release() {
	if a.call == nil {
		return
	}
	token := a.gateway.world.token()
	d, _ := a.call.life.Release(a.number, a.gateway.now(), token, true)
	a.requeue(d, token, true)
	a.stream.close(a.gateway.node)
}

// lose is the end of an attempt whose result will never come.
func (a *attempt) lose() {
	token := a.gateway.world.token()
	d, _ := a.call.life.Lose(a.number, a.gateway.now(), token, "lost")
	a.requeue(d, token, false)
}

// requeue does what was decided, and records if the call waits again.
func (a *attempt) requeue(d core.Decision, token invocation.Token, released bool) {
	c := a.call
	if d.Offer {
		a.gateway.note("queues again", uint64(c.number), uint64(a.number))
		c.queued = a.gateway.now()
		a.gateway.world.truth.renew(c.callRecord, a.number, token, released)
		// An instance that was lost may have run it.
		c.open = c.open || !released
	}
	a.gateway.carryOut(c, d)
}
