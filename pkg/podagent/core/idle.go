package core

import "time"

// MinLeavePause is the shortest time between two requests to leave, however soon the
// scheduler wants to be asked again.
const MinLeavePause = time.Second

// idleness is how long an instance has waited for calls, and what it has done since.
type idleness struct {
	// since is when the last call ended; zero while one runs.
	since time.Time
	// quiet says that the instance has gone quiet.
	quiet bool
	// notBefore is when the instance may ask again; zero if it has not asked yet.
	notBefore time.Time
	// askedToLeave says that it waits for an answer.
	askedToLeave bool
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

// waits reports whether the instance is idle and not draining.
func (c *Core) waits() bool { return !c.idle.since.IsZero() && !c.life.draining }

// idleNext is when idleDue has something to do; zero for not at all.
func (c *Core) idleNext() time.Time {
	switch {
	case !c.waits() || c.idle.askedToLeave:
		return time.Time{}
	case !c.idle.quiet:
		return earliest(c.idle.quietAt(c.params), c.idle.leaveAt(c.params))
	}
	return c.idle.leaveAt(c.params)
}

// idleDue goes quiet or asks to leave if it is time. Without a scheduler, the agent asks the
// next one.
func (c *Core) idleDue(now time.Time) {
	if !c.waits() || c.idle.askedToLeave {
		return
	}
	if !now.Before(c.idle.leaveAt(c.params)) {
		c.idle.askedToLeave = true
		c.send(now, LeaveRequest{now.Sub(c.idle.since)})
		return
	}
	if !c.idle.quiet && !now.Before(c.idle.quietAt(c.params)) {
		c.idle.quiet = true
		c.emit(Quiet{})
		c.pingIfWelcome(now) // the scheduler learns that it will hear less
	}
}

func onLeaveAnswer(c *Core, now time.Time, a LeaveAnswer) {
	switch {
	case c.life.draining:
	case a.Granted:
		c.drainSilently("it waited in vain")
	case c.idle.askedToLeave:
		c.idle.askedToLeave = false
		c.idle.notBefore = now.Add(max(a.AskAgain, MinLeavePause))
	}
}
