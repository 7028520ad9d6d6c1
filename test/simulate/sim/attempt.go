package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// attempt is a call that an instance has, as its gateway sees it.
type attempt struct {
	conn *agentConn
	pool *pool
	call *call
	// wire is its number on the connection, byLoan says that it took no ticket, and lent that
	// its place may stay with the gateway.
	wire         int
	byLoan, lent bool
	number       int
	// came says that the instance has sent a frame about it, and ended that it is over there.
	came, ended bool
	// waitsLong says that it waits for a core of its node, and longWait is what the pool knows of that.
	waitsLong bool
	longWait  core.LongWait[*agentConn]
}

// answered is the end of the call. Its place goes to the next one before anything else.
func (a *attempt) answered(m answerFrame) {
	g, c := a.conn.gateway, a.call
	a.placeEnds(m.keeps, m.exec, m.coreWait)
	switch {
	case m.run > 0:
		d, err := c.life.Begin(a.number, true)
		if err == nil {
			c.life.Wrote(true)
			g.answer(c, answeredOK, m.run)
		}
		g.carryOut(c, d)
	case m.lost:
		a.lose()
	case m.tooLate:
		c.unlucky = true
		g.carryOut(c, c.life.FailUntouched(a.number))
	default:
		g.carryOut(c, c.life.Fail(a.number))
	}
}

// released queues the call again, for the function has seen nothing of it: before others can have
// its place.
func (a *attempt) released(m releaseFrame) {
	if !a.conn.over(a) {
		return
	}
	a.ended = true
	switch {
	case a.waitsLong:
		a.leavesBusyNode()
	case m.noCredit:
		a.giveUp((*core.Invocation).Decline)
	default:
		a.giveUp((*core.Invocation).Release)
	}
	a.freePlace(m.keeps || m.noCredit, 0, 0)
}

// neverCame ends an attempt whose call never came to its instance.
func (a *attempt) neverCame() {
	a.conn.gateway.note("finds that a call never came", uint64(a.call.number), uint64(a.number))
	a.giveUp((*core.Invocation).Decline)
}

func (a *attempt) giveUp(end func(*core.Invocation, int, time.Time, invocation.Token, bool) (core.Decision, error)) {
	a.ended, a.call.unlucky = true, true
	token := a.conn.gateway.world.token()
	d, _ := end(a.call.life, a.number, a.conn.gateway.now(), token, true)
	a.requeue(d, token, true)
}

// placeEnds ends what the attempt has of its instance. If the place stays with the gateway, the
// next call gets it.
func (a *attempt) placeEnds(keeps bool, took, coreWait time.Duration) {
	if a.conn.over(a) {
		a.ended = true
		a.freePlace(keeps, took, coreWait)
	}
}

// freePlace frees the place at the instance.
func (a *attempt) freePlace(keeps bool, took, coreWait time.Duration) {
	if !a.lent {
		return
	}
	a.pool.core.EndWait(&a.longWait)
	if a.byLoan && took > 0 {
		a.pool.core.CountExecution(took, coreWait)
		a.pool.fn.byLoans++
	}
	a.pool.core.Ended(a.conn.lender, keeps)
	a.conn.gateway.handOver(a.pool)
}

// cancel tells the instance to end the call. One that does not in time loses its connection.
func (a *attempt) cancel() {
	if a.ended {
		return
	}
	g := a.conn.gateway
	a.conn.stream.send(g.node, cancelFrame{a.wire})
	g.after(cancelPatience, func() {
		if !a.ended {
			a.conn.stream.close(g.node)
			a.conn.end()
		}
	})
}

// lose is the end of an attempt whose result will never come.
func (a *attempt) lose() {
	a.ended, a.call.unlucky = true, true
	now, token := a.conn.gateway.now(), a.conn.gateway.world.token()
	d, _ := a.call.life.Lose(a.number, now, token, "lost")
	if d.Wait {
		a.call.stopsWaiting = maxTime(a.call.stopsWaiting, now.Add(a.call.mayWait))
	}
	a.requeue(d, token, false)
}

// requeue does what was decided, and records if the call waits again.
func (a *attempt) requeue(d core.Decision, token invocation.Token, released bool) {
	c, g := a.call, a.conn.gateway
	if d.Wait {
		g.note("queues again", uint64(c.number), uint64(a.number))
		c.queued, c.waits, c.overtaken = g.now(), g.world.now, nil
		g.world.truth.renew(c.callRecord, a.number, token, released)
	}
	g.carryOut(c, d)
}
