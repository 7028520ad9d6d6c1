package core

import (
	"errors"
	"time"
)

// sparePatience is how long a spare instance tries to reach the scheduler that it
// belongs to. Nobody else knows what to do with it, and another one is soon made.
const sparePatience = 30 * time.Second

// A spare instance is of use when its runtime waits for the assignment: whatever takes
// the instance then waits for the function's own code only. Until it is taken it is
// not needed for long, perhaps, so it gives back what it needed to start.
func (RuntimeReady) happen(c *Core, now time.Time) {
	if !c.params.Spare || c.life.leaving || !c.link.at.IsZero() {
		return
	}
	c.do(Quiet{})
	c.link.begin(now)
	c.dialIfDue(now)
}

// An Assignment is taken once, and by nobody who leaves. The instance introduces itself
// anew to the same scheduler while the function loads, as any instance does, so that
// whether the function becomes ready is said in the same words.
func (a Assignment) heard(c *Core, now time.Time) {
	if !c.params.Spare || c.life.leaving {
		return
	}
	params, err := a.params(c.params)
	if err != nil {
		c.leave(now, ReasonStartFailed, "the assignment makes no sense: "+err.Error())
		return
	}
	c.params = params
	c.origin, c.counts = origin{began: now}, Report{}
	c.do(Assume{})
	c.do(Drop{c.link.session})
	c.link.become(now, params)
	c.dialIfDue(now)
}

// params are those of the function's instance that a spare one becomes.
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

// become ends a session and goes on with its scheduler at once, as an instance of a
// function.
func (l *link) become(now time.Time, p Params) {
	session, seen := l.session, l.seen
	*l = newLink(p)
	l.session, l.seen, l.at = session, seen, now
}
