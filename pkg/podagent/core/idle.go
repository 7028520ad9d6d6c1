package core

import "time"

// LeastPause is the shortest time between two requests to leave, however soon the
// scheduler wants to be asked again.
const LeastPause = time.Second

// idleness is how long an agent has waited and what it did about it.
type idleness struct {
	// since is when the last call ended; zero while one runs.
	since time.Time
	// quiet says that connections were closed already.
	quiet bool
	// notBefore is when the scheduler wants to be asked again; zero if it was
	// not asked yet.
	notBefore time.Time
	// asked says that an answer is due.
	asked bool
}

// quietAt and leaveAt are when the agent goes quiet and asks to leave.
func (i idleness) quietAt(p Params) time.Time { return i.since.Add(p.BackoffAfter) }

func (i idleness) leaveAt(p Params) time.Time {
	at := i.since.Add(p.BackoffAfter + time.Duration(float64(p.IdleTimeout)*p.Jitter))
	if i.notBefore.After(at) {
		return i.notBefore
	}
	return at
}

// waits tells whether time is counted at all.
func (c *Core) waits() bool { return !c.idle.since.IsZero() && !c.life.leaving }

// idleNext is when idleDue has something to do; zero for not at all.
func (c *Core) idleNext() time.Time {
	switch {
	case !c.waits() || c.idle.asked:
		return time.Time{}
	case !c.idle.quiet:
		return earliest(c.idle.quietAt(c.params), c.idle.leaveAt(c.params))
	}
	return c.idle.leaveAt(c.params)
}

// idleDue goes quiet or asks to leave if it is time. An agent without a scheduler
// asks the next one.
func (c *Core) idleDue(now time.Time) {
	if !c.waits() || c.idle.asked {
		return
	}
	if !now.Before(c.idle.leaveAt(c.params)) {
		c.idle.asked = true
		c.say(now, LeaveRequest{now.Sub(c.idle.since)})
		return
	}
	if !c.idle.quiet && !now.Before(c.idle.quietAt(c.params)) {
		c.idle.quiet = true
		c.do(Quiet{})
		c.pingIfWelcome(now) // the scheduler learns that it will hear less
	}
}

func (a LeaveAnswer) heard(c *Core, now time.Time) {
	switch {
	case c.life.leaving:
	case a.Granted:
		c.leaveSilently("it waited in vain")
	case c.idle.asked:
		c.idle.asked = false
		c.idle.notBefore = now.Add(max(a.AskAgain, LeastPause))
	}
}
