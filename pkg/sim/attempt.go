package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/table"
)

// attempt is the gateway's end of an instance's claim and of what follows.
type attempt struct {
	gateway *gateway
	stream  *stream
	call    *call // nil until it is granted
	number  int
	runBy   time.Time
	over    bool
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
	if a.call != nil && !a.over {
		a.lost()
	}
}

// claim grants a call or refuses it.
func (a *attempt) claim(m claim) {
	g := a.gateway
	token := m.token
	if c := g.find(m.id); c != nil && g.world.config.Mutation == NoTokenCheck {
		token = c.token
	}
	claimed, err := g.table.Claim(m.id, token, m.cid)
	if err != nil {
		g.refuseClaim(a)
		return
	}
	c := claimed.Payload
	g.waits--
	c.claimed, c.attempt = true, a
	a.call, a.number = c, claimed.Attempt
	a.runBy = g.now().Add(c.fn.timeout + runGrace)
	g.note("grants", uint64(c.number), uint64(a.number))
	g.world.ledger.grant(c.invocation, a.number, m.token, m.cid)
	if c.answered && g.world.config.Mutation != ForgottenCancel {
		// Its client has left just now.
		a.end()
		g.refuseClaim(a)
		return
	}
	g.world.ledger.wanted(c.invocation)
	if claimed.Reoffered {
		g.withdraw(c)
	}
	g.after(c.fn.timeout+runGrace, a.expire)
	a.stream.send(g.node, granted{attempt: a.number, remain: c.fn.timeout})
	if g.world.config.Mutation == EarlyAck {
		g.answer(c, answeredOK, 0)
	}
}

func (g *gateway) refuseClaim(a *attempt) {
	a.over = true
	a.stream.send(g.node, claimRefused{})
	a.stream.close(g.node)
}

// expire ends an attempt whose time is up.
func (a *attempt) expire() {
	if a.over || a.gateway.now().Before(a.runBy) {
		return
	}
	c := a.call
	a.end()
	a.gateway.answer(c, answeredMaybe, 0)
	a.cancel()
}

// cancel tells the instance to end the call.
func (a *attempt) cancel() { a.stream.send(a.gateway.node, cancel{}) }

// end takes the call out of the table; false if that was done already.
func (a *attempt) end() bool {
	if a.over || a.gateway.table.End(a.call.id, a.number) != nil {
		return false
	}
	a.over = true
	a.gateway.forget(a.call)
	return true
}

// result is the end of the call.
func (a *attempt) result(m result) {
	if a.call == nil || !a.end() {
		return
	}
	if m.run == 0 {
		a.gateway.answer(a.call, answeredMaybe, 0)
	} else {
		a.gateway.answer(a.call, answeredOK, m.run)
	}
	a.stream.close(a.gateway.node)
}

// release queues the call again, for the function has seen nothing of it.
func (a *attempt) release() {
	if a.call != nil && !a.over {
		a.requeue(true)
		a.stream.close(a.gateway.node)
	}
}

// lost is the end of an attempt whose result will never come. Another instance
// may try a call of an idempotent function.
func (a *attempt) lost() {
	c := a.call
	again := c.fn.idempotent && a.number < maxAttempts || a.gateway.world.config.Mutation == RetryAfterClaim
	if again && !c.answered {
		a.requeue(false)
		return
	}
	a.end()
	a.gateway.answer(c, answeredMaybe, 0)
}

// requeue lets the call wait again. Released says that it was not started.
func (a *attempt) requeue(released bool) {
	g, c, now := a.gateway, a.call, a.gateway.now()
	token := g.world.token()
	var queued table.Invocation[*call]
	var err error
	if released {
		queued, err = g.table.Release(c.id, a.number, token, now)
	} else {
		queued, err = g.table.Retry(c.id, a.number, token, now, now.Add(maxQueueTime))
	}
	if err != nil {
		return
	}
	c.deadline = queued.Deadline
	g.note("queues again", uint64(c.number), uint64(a.number))
	a.over = true
	g.waits++
	c.claimed, c.attempt = false, nil
	g.world.ledger.renew(c.invocation, a.number, token, released)
	if !released {
		// The instance that was lost may have run it.
		c.open = true
	}
	switch {
	case c.answered:
		g.leaveQueue(c)
	case !now.Before(queued.Deadline):
		g.tooLate(c)
	default:
		g.offer(queued, now)
	}
}
