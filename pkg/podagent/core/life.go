package core

import (
	"maps"
	"slices"
	"time"
)

// lastWords is how long an agent that ends waits for a scheduler to hear it.
const lastWords = 2 * time.Second

// life is how far an instance has come.
type life struct {
	// ready says that the function can be called.
	ready bool
	// leaving says that no ticket is taken any more, and goodbye what is to be
	// said about it; nil for nothing.
	leaving bool
	goodbye *Goodbye
	// spent says that the function must not be given a call any more.
	spent bool
	// drained says that no call runs, hungUp that all was said, and abandoned
	// that nobody is to hear it.
	drained, hungUp, abandoned bool
	// giveUpAt is when the last words count as heard; zero before them.
	giveUpAt time.Time
	over     bool
}

func (FunctionReady) happen(c *Core, now time.Time) {
	if c.life.leaving || c.life.ready || c.params.Spare {
		return
	}
	c.life.ready = true
	c.origin.ready = now
	c.idle = idleness{since: now}
	c.ask(now)
}

// A spare instance whose runtime fails has not said hello, by which it would be one that
// can be taken. That it ends, and with what, is seen without its word.
func (f FunctionFailed) happen(c *Core, now time.Time) {
	if c.link.at.IsZero() {
		c.leaveSilently(f.Detail)
		return
	}
	reason := ReasonStartFailed
	if f.TimedOut {
		reason = ReasonStartTimedOut
	}
	c.leave(now, reason, f.Detail)
}

// A Stop of an instance whose function was not ready yet says no goodbye: the one
// who stopped it knows better why it did not start.
func (s Stop) happen(c *Core, now time.Time) {
	if !c.life.ready {
		c.leaveSilently(s.Detail)
		return
	}
	c.leave(now, ReasonStopped, s.Detail)
}

// A function that has ended answers no call, whatever the calls that it ran would still
// wait for. Of one that never was ready others know better why.
func (f FunctionEnded) happen(c *Core, now time.Time) {
	if !c.life.ready {
		c.leaveSilently(f.Detail)
		return
	}
	c.leave(now, ReasonFunctionEnded, f.Detail)
	for _, n := range slices.Sorted(maps.Keys(c.calls.attempts)) {
		if c.calls.in(running, n) != nil {
			c.do(Cut{n})
		}
	}
}

func (e Ended) heard(c *Core, now time.Time) { FunctionEnded{Detail: e.How}.happen(c, now) }

func (r Retire) heard(c *Core, now time.Time) { c.leave(now, r.Reason, r.Detail) }

// leave gives up the instance. Only the first reason counts.
func (c *Core) leave(now time.Time, reason Reason, detail string) {
	if reason == ReasonCallBroken || reason == ReasonFunctionEnded {
		c.life.spent = true
	}
	if c.life.leaving {
		return
	}
	c.life.leaving = true
	c.life.goodbye = &Goodbye{Reason: reason, Detail: detail}
	c.do(GaveUp{reason, detail})
	c.say(now, *c.life.goodbye)
}

// leaveSilently gives up an instance that schedulers need not hear of.
func (c *Core) leaveSilently(detail string) {
	if c.life.leaving {
		return
	}
	c.life.leaving = true
	c.do(GaveUp{ReasonDone, detail})
}

// abandon ends the search for a scheduler that would listen.
func (c *Core) abandon(now time.Time, detail string) {
	c.leave(now, ReasonDone, detail)
	c.life.abandoned = true
}

// settleEnd brings an instance that was given up to its end, as far as its calls
// allow: first the calls, then their results, then the last words.
func (c *Core) settleEnd(now time.Time) {
	if !c.life.leaving {
		return
	}
	if !c.life.drained && c.calls.held == 0 {
		c.life.drained = true
		c.do(Drained{})
	}
	if len(c.calls.attempts) > 0 {
		return
	}
	if !c.life.hungUp {
		c.life.hungUp = true
		c.life.giveUpAt = now.Add(lastWords)
		c.hangUp()
	}
	nothingToSay := c.life.goodbye == nil && c.link.phase != linkOpen
	if nothingToSay || c.life.abandoned || !now.Before(c.life.giveUpAt) {
		c.end()
	}
}

func (c *Core) end() {
	if c.life.over {
		return
	}
	c.drop()
	c.life.over = true
	c.do(End{})
}
