package core

import (
	"maps"
	"slices"
	"time"
)

// goodbyeTimeout is how long an ending agent waits for a scheduler to receive its goodbye.
const goodbyeTimeout = 2 * time.Second

// lifecycle is how far an instance has come.
type lifecycle struct {
	// ready says that the function can be called.
	ready bool
	// draining says that the instance takes no more tickets. goodbye is its message to the
	// scheduler about that; nil for none.
	draining bool
	goodbye  *Goodbye
	// unusable says that the function must not get another call, not even a granted one.
	unusable bool
	// drained says that no call runs any more, hungUp that the agent closed its side of the
	// stream, and abandoned that it no longer looks for a scheduler.
	drained, hungUp, abandoned bool
	// goodbyeDeadline is when the agent stops waiting for its goodbye to arrive; zero
	// before it was sent.
	goodbyeDeadline time.Time
	over            bool
}

// takesCalls reports whether the function can be called, and the instance goes on.
func (l *lifecycle) takesCalls() bool { return l.ready && !l.draining }

func (FunctionReady) apply(c *Core, now time.Time) {
	if c.life.draining || c.life.ready || c.params.Spare {
		return
	}
	c.life.ready = true
	c.startup.ready = now
	c.idle = idleness{since: now}
	c.sendPull(now, c.free())
}

// A spare instance whose runtime fails has not said hello yet, so no scheduler would assign
// it. The driver sees that and how it ends, without a goodbye.
func (f FunctionFailed) apply(c *Core, now time.Time) {
	reason := ReasonStartFailed
	if f.TimedOut {
		reason = ReasonStartTimedOut
	}
	if !c.link.enabled {
		c.drainSilently(now, reason, f.Detail)
		return
	}
	c.drain(now, reason, f.Detail)
}

// An instance that is stopped before its function is ready says no goodbye: its driver knows
// the cause.
func (s Stop) apply(c *Core, now time.Time) {
	if !c.life.ready {
		c.drainSilently(now, ReasonStopped, s.Detail)
		return
	}
	c.drain(now, ReasonStopped, s.Detail)
}

// Calls of a function that has ended get no answer, so they are cut. Why a function ended
// before it was ready is for the driver to report.
func (f FunctionEnded) apply(c *Core, now time.Time) {
	if !c.life.ready {
		c.drainSilently(now, ReasonFunctionEnded, f.Detail)
		return
	}
	c.drain(now, ReasonFunctionEnded, f.Detail)
	for _, n := range slices.Sorted(maps.Keys(c.calls.attempts)) {
		if c.calls.inPhase(running, n) != nil {
			c.emit(Cut{n})
		}
	}
}

func (e EndReported) reply(c *Core, now time.Time) { FunctionEnded{Detail: e.How}.apply(c, now) }

func (r Drain) reply(c *Core, now time.Time) { c.drain(now, r.Reason, r.Detail) }

// drain stops taking calls, takes the loans back and says goodbye. Only the first reason counts.
func (c *Core) drain(now time.Time, reason Reason, detail string) {
	if reason == ReasonCallBroken || reason == ReasonFunctionEnded {
		c.life.unusable = true
	}
	if c.life.draining {
		return
	}
	c.life.draining = true
	c.life.goodbye = &Goodbye{Reason: reason, Detail: detail}
	c.emit(Draining{reason, detail})
	c.endLoans(now)
	c.send(now, *c.life.goodbye)
}

// drainSilently is drain without a goodbye.
func (c *Core) drainSilently(now time.Time, reason Reason, detail string) {
	if c.life.draining {
		return
	}
	c.life.draining = true
	c.emit(Draining{reason, detail})
	c.endLoans(now)
}

// endLoans takes the loans back, and gives up the call that waits for a core and the claims that
// wait for a connection: others get them, now that the instance leaves.
func (c *Core) endLoans(now time.Time) {
	c.takeAllBack(now)
	if n, a := c.waitingForCore(); a != nil {
		c.giveUp(now, n, a)
	}
	for _, n := range slices.Sorted(maps.Keys(c.calls.attempts)) {
		if a := c.calls.inPhase(claiming, n); a != nil && !a.sent {
			c.giveBack(now, n, a, Done{ID: a.id})
		}
	}
}

// abandon drains, and ends the search for a scheduler.
func (c *Core) abandon(now time.Time, detail string) {
	c.drain(now, ReasonDone, detail)
	c.life.abandoned = true
}

// advanceDrain takes a draining instance one step further: it waits for the calls, then until
// the gateways have their answers, then for the goodbye.
func (c *Core) advanceDrain(now time.Time) {
	if !c.life.draining {
		return
	}
	if !c.life.drained && c.calls.held() == 0 {
		c.life.drained = true
		c.emit(Drained{})
		c.closeConns(now)
	}
	if !c.life.drained || len(c.conns.all) > 0 {
		return
	}
	if !c.life.hungUp {
		c.life.hungUp = true
		c.life.goodbyeDeadline = now.Add(goodbyeTimeout)
		c.hangUp()
	}
	nothingToSay := c.life.goodbye == nil && c.link.phase != linkOpen
	if nothingToSay || c.life.abandoned || !now.Before(c.life.goodbyeDeadline) {
		c.stop()
	}
}

func (c *Core) stop() {
	if c.life.over {
		return
	}
	c.dropSession()
	c.life.over = true
	c.emit(End{})
}
