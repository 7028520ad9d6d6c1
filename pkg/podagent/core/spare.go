package core

import (
	"errors"
	"time"
)

// spareReconnectTimeout is how long a spare instance tries to reach its scheduler. No other
// scheduler knows it, and a replacement starts soon.
const spareReconnectTimeout = 30 * time.Second

// A spare instance announces itself once its runtime waits for the assignment, so that a
// start from it takes no longer than the function's own code. It may wait for long, so it
// gives back the memory that it needed to start.
func (RuntimeReady) apply(c *Core, now time.Time) {
	if !c.params.Spare || c.life.draining || c.link.enabled {
		return
	}
	c.emit(Quiet{})
	c.link.enable(now)
	c.dialIfDue(now)
}

// A spare instance accepts one Assignment, and none while it drains. It then says hello again
// to the same scheduler while the function loads, like an instance that just started.
func (a Assignment) reply(c *Core, now time.Time) {
	if !c.params.Spare || c.life.draining {
		return
	}
	params, err := a.params(c.params)
	if err != nil {
		c.drain(now, ReasonStartFailed, "the assignment makes no sense: "+err.Error())
		return
	}
	c.params = params
	c.startup, c.counts = startup{began: now}, Report{}
	c.emit(LoadFunction{})
	c.emit(Drop{c.link.session})
	c.link.restart(now, params)
	c.dialIfDue(now)
}

// params are the parameters of the function's instance that the spare one becomes.
func (a Assignment) params(spare Params) (Params, error) {
	if a.StartupTimeout <= 0 {
		return Params{}, errors.New("core: Assignment.StartupTimeout must be more than 0")
	}
	p := Params{
		Owner: spare.Owner, Jitter: spare.Jitter,
		Concurrency: a.Concurrency, BackoffAfter: a.BackoffAfter, IdleTimeout: a.IdleTimeout,
	}
	return p, p.Validate()
}

// restart ends the session and dials the same scheduler at once, as an instance of a function.
func (l *link) restart(now time.Time, p Params) {
	session, seen := l.session, l.lastHeard
	*l = newLink(p)
	l.enable(now)
	l.session, l.lastHeard = session, seen
}
