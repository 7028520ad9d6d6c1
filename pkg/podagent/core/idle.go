package core

import "time"

// MinLeavePause is the shortest time between two requests to leave, however soon the
// scheduler wants to be asked again.
const MinLeavePause = time.Second

// idleReportAfter is how long an instance with loans runs nothing before it reports that. The
// scheduler may evict it then, for which a second more or less makes no difference; and a busy
// instance, which rarely idles for as long, sends nothing.
const idleReportAfter = time.Second

// idleness is how long an instance has waited for calls, and what it has done since.
type idleness struct {
	// since is when the last call ended; zero while one runs.
	since time.Time
	// quiet says that the instance has gone quiet, and reported that the scheduler knows that
	// it is idle although it has loans.
	quiet, reported bool
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

// isIdle reports whether the instance is idle and not draining.
func (c *Core) isIdle() bool { return !c.idle.since.IsZero() && !c.life.draining }

// keepsLoans reports whether the instance keeps its loans however long it is idle. While no
// scheduler answers, only the gateways that have them can call it.
func (c *Core) keepsLoans() bool { return c.conns.idle > 0 && !c.link.established() }

// noteCall notes that the instance has a call.
func (c *Core) noteCall(now time.Time) {
	reported := c.idle.reported
	c.idle = idleness{}
	if reported {
		c.sendPull(now, 0)
	}
}

// idleReportAt is when an instance with loans reports that it is idle; zero if it does not. Recalled
// places are not lent any more, though a gateway may still call by them.
func (c *Core) idleReportAt() time.Time {
	if c.idle.reported || c.conns.idle == 0 || c.conns.lent() == 0 {
		return time.Time{}
	}
	return c.idle.since.Add(idleReportAfter)
}

// idleNext is when idleDue has something to do; zero for not at all.
func (c *Core) idleNext() time.Time {
	switch {
	case !c.isIdle() || c.idle.askedToLeave || c.keepsLoans():
		return time.Time{}
	case !c.idle.quiet:
		return earliest(c.idleReportAt(), c.idle.quietAt(c.params), c.idle.leaveAt(c.params))
	}
	return c.idle.leaveAt(c.params)
}

// idleDue reports that the instance is idle, goes quiet or asks to leave if it is time. Without
// a scheduler, the agent asks the next one. A surplus instance takes its loans back before it
// asks: only instances that no gateway calls leave.
func (c *Core) idleDue(now time.Time) {
	if !c.isIdle() || c.idle.askedToLeave || c.keepsLoans() {
		return
	}
	if !now.Before(c.idle.leaveAt(c.params)) {
		c.pullLoansBack(now)
		c.idle.askedToLeave = true
		c.send(now, LeaveRequest{now.Sub(c.idle.since)})
		return
	}
	if !c.idle.quiet && !now.Before(c.idle.quietAt(c.params)) {
		c.idle.quiet = true
		c.pullLoansBack(now)
		c.emit(Quiet{})
		c.reportPingEvery(now) // the scheduler learns that it will hear less
		return
	}
	if at := c.idleReportAt(); !at.IsZero() && !now.Before(at) {
		c.idle.reported = true
		c.sendPull(now, 0)
	}
}

// pullLoansBack takes the idle loans back, and pulls with them.
func (c *Core) pullLoansBack(now time.Time) {
	if n := c.takeAllBack(now); n > 0 {
		c.sendPull(now, n)
	}
}

func (a LeaveAnswer) reply(c *Core, now time.Time) {
	switch {
	case c.life.draining:
	case a.Granted:
		c.drainSilently(now, ReasonIdle, "no call for its idle timeout")
	case c.idle.askedToLeave:
		c.idle.askedToLeave = false
		c.idle.notBefore = now.Add(max(a.AskAgain, MinLeavePause))
	}
}
