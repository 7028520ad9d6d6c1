package core

import "time"

// Pauses between two attempts to reach a scheduler. For recentFor after the last reply they
// stay below maxRecentPause, because calls wait.
const (
	minPause       = 10 * time.Millisecond
	maxRecentPause = 250 * time.Millisecond
	maxPause       = 2 * time.Second
	recentFor      = 10 * time.Second
)

// minReconnectTimeout bounds from below how long an agent tries to reach a scheduler. It
// tries for longer if it would wait longer for a call.
const minReconnectTimeout = time.Minute

const (
	// dialTimeout bounds one connection attempt. For an address that stands for any
	// scheduler it doubles with each timeout, up to dialDoublings times: the balancer
	// may have chosen one that hangs, or all may be slow.
	dialTimeout   = time.Second
	dialDoublings = 2
)

const (
	// steadyAfter is how long a session must last to reset pauses and hops.
	steadyAfter = time.Second
	// maxHops is how many redirects in a row the agent follows.
	maxHops = 2
	// avoidFor is how long the agent ignores redirects to an owner that it could not
	// reach, unless they have a newer epoch.
	avoidFor = time.Second
)

type linkPhase int

const (
	linkDown linkPhase = iota
	linkDialing
	linkOpen
)

// link is the connection to a scheduler, or the search for one.
type link struct {
	reconnectTimeout time.Duration
	// home is the address to dial unless a redirect names one; empty for any scheduler.
	home    string
	session Session
	phase   linkPhase
	// addr is the scheduler of the session; empty for any.
	addr string
	// enabled says that the agent looks for a scheduler: a spare instance only once its runtime
	// waits for the assignment.
	enabled bool
	// dialAt is when to dial (linkDown), dialBy when the attempt times out (linkDialing), and
	// openedAt when the stream opened (linkOpen).
	dialAt, dialBy, openedAt time.Time
	// heartbeat watches an open stream.
	heartbeat heartbeat

	// next is the address to dial; empty for any scheduler. hops counts redirects in a
	// row, and pause is the pause before the last dial.
	next  string
	hops  int
	pause time.Duration
	// unanswered counts hellos in a row that got no answer in time.
	unanswered int
	// dialTimeouts counts connection attempts in a row that timed out.
	dialTimeouts int

	// lastHeard is when the last reply came.
	lastHeard time.Time
	// epoch is the highest epoch seen so far.
	epoch uint64
	// unreachable are owners that could not be reached recently, by address.
	unreachable map[string]failure
}

// failure is a failed attempt to reach an owner.
type failure struct {
	epoch uint64
	until time.Time
}

func newLink(p Params) link {
	l := link{reconnectTimeout: reconnectTimeout(p), next: p.Owner, unreachable: make(map[string]failure)}
	if p.Spare {
		l.home = p.Owner
	}
	return l
}

// reconnectTimeout is how long an instance tries to reach a scheduler.
func reconnectTimeout(p Params) time.Duration {
	if p.Spare {
		return spareReconnectTimeout
	}
	return max(minReconnectTimeout, p.BackoffAfter+p.IdleTimeout)
}

func (l *link) enable(now time.Time) { l.enabled, l.lastHeard, l.dialAt = true, now, now }

// steady reports whether the session has worked for steadyAfter.
func (l *link) steady(now time.Time) bool {
	return l.phase == linkOpen && l.heartbeat.helloAnswered && now.Sub(l.openedAt) >= steadyAfter
}

// retryAny ends the session or connection attempt. After a pause the agent dials any
// scheduler; a spare instance dials its own.
func (l *link) retryAny(now time.Time) {
	if l.steady(now) {
		l.pause = 0
	}
	limit := maxPause
	if now.Sub(l.lastHeard) < recentFor {
		limit = maxRecentPause
	}
	l.pause = min(max(2*l.pause, minPause), limit)
	l.phase, l.next, l.hops, l.dialAt = linkDown, l.home, 0, now.Add(l.pause)
}

// redirect ends the session and dials the named owner at once, unless that owner is known to
// be unreachable or the hops are used up.
func (l *link) redirect(now time.Time, m Moved) {
	if l.steady(now) {
		l.hops, l.pause = 0, 0
	}
	l.epoch = max(l.epoch, m.Epoch)
	failed, known := l.unreachable[m.Addr]
	avoid := known && m.Epoch <= failed.epoch && now.Before(failed.until)
	if m.Addr == "" || avoid || l.hops >= maxHops || l.home != "" {
		l.retryAny(now)
		return
	}
	l.phase, l.next, l.hops, l.dialAt = linkDown, m.Addr, l.hops+1, now
}

// markUnreachable records that the owner could not be reached. An owner whose stream merely
// broke is not recorded: dialing it again costs nothing, as it refuses at once.
func (l *link) markUnreachable(now time.Time) {
	if l.addr == "" {
		return
	}
	for addr, f := range l.unreachable {
		if !now.Before(f.until) {
			delete(l.unreachable, addr)
		}
	}
	l.unreachable[l.addr] = failure{epoch: l.epoch, until: now.Add(avoidFor)}
}

// abandonAt is when the agent has tried for long enough to reach a scheduler; zero while it runs a
// call. Gateways that have loans need no scheduler, so each call extends the time.
func (c *Core) abandonAt() time.Time {
	l := &c.link
	switch {
	case l.established() || c.calls.held() > 0:
		return time.Time{}
	case c.calls.lastRan.After(l.lastHeard):
		return c.calls.lastRan.Add(l.reconnectTimeout)
	}
	return l.lastHeard.Add(l.reconnectTimeout)
}

func (l *link) established() bool { return l.phase == linkOpen && l.heartbeat.helloAnswered }

// dialIfDue dials if it is time.
func (c *Core) dialIfDue(now time.Time) {
	l := &c.link
	if l.phase != linkDown || c.life.abandoned || !l.enabled || now.Before(l.dialAt) {
		return
	}
	timeout := dialTimeout
	if l.next == l.home {
		timeout <<= min(l.dialTimeouts, dialDoublings)
	}
	l.session++
	l.phase, l.addr, l.dialBy = linkDialing, l.next, now.Add(timeout)
	c.emit(Dial{l.session, l.addr})
}

// apply says hello, and then pulls or repeats the goodbye.
func (o Opened) apply(c *Core, now time.Time) {
	l := &c.link
	if o.Session != l.session || l.phase != linkDialing {
		return
	}
	l.phase, l.openedAt, l.heartbeat, l.dialTimeouts = linkOpen, now, newHeartbeat(now), 0
	if c.startup.opened {
		c.counts.Reconnects++
	}
	c.startup.opened = true
	c.send(now, c.startup.hello(now, c.params.Spare))
	switch {
	case c.life.goodbye != nil:
		c.send(now, *c.life.goodbye)
	default:
		c.sendPull(now, c.free())
		// The answer to a request to leave may have been lost.
		c.idle.askedToLeave = false
	}
	if c.life.hungUp {
		c.hangUp()
	}
}

func (e Lost) apply(c *Core, now time.Time) {
	l := &c.link
	if e.Session != l.session || l.phase == linkDown {
		return
	}
	switch {
	case e.Cause == CauseUnknown:
		l.phase = linkDown
		c.abandon(now, e.Detail)
	case c.life.hungUp && l.phase == linkOpen && (c.life.goodbye == nil || e.Cause == CauseClosed):
		l.phase = linkDown
		c.stop()
	default:
		if l.phase == linkDialing {
			l.markUnreachable(now)
		}
		l.retryAny(now)
	}
}

func (s Received) apply(c *Core, now time.Time) {
	l := &c.link
	if s.Session != l.session || l.phase != linkOpen {
		return
	}
	l.lastHeard, l.unanswered = now, 0
	l.heartbeat.observe(now)
	s.Reply.reply(c, now)
}

func (w Welcome) reply(c *Core, now time.Time) {
	c.link.epoch = max(c.link.epoch, w.Epoch)
	c.startup.accepted = true
	if c.params.Spare {
		c.reportPingEvery(now) // the scheduler learns that it will hear little
	}
}

// Any reply proves that the scheduler is there.
func (Pong) reply(*Core, time.Time) {}

func (m Moved) reply(c *Core, now time.Time) {
	c.emit(Drop{c.link.session})
	c.link.redirect(now, m)
}

// send sends a message if the stream is open; otherwise the next hello includes its content.
func (c *Core) send(now time.Time, m Message) {
	if c.link.phase == linkOpen {
		c.link.heartbeat.sent = now
		c.emit(Send{c.link.session, m})
	}
}

func (c *Core) hangUp() {
	if c.link.phase == linkOpen {
		c.emit(HangUp{c.link.session})
	}
}

// dropSession drops the session, if there is one.
func (c *Core) dropSession() {
	if c.link.phase != linkDown {
		c.emit(Drop{c.link.session})
		c.link.phase = linkDown
	}
}

// linkDue ends attempts that got no answer, pings a silent scheduler, and dials.
func (c *Core) linkDue(now time.Time) {
	l := &c.link
	if !l.enabled || c.life.abandoned {
		return
	}
	if at := c.abandonAt(); !at.IsZero() && !now.Before(at) {
		c.dropSession()
		c.abandon(now, "no scheduler could be reached")
		return
	}
	switch {
	case l.phase == linkDialing && !now.Before(l.dialBy):
		l.dialTimeouts++
		c.emit(Drop{l.session})
		l.markUnreachable(now)
		l.retryAny(now)
	case l.phase == linkOpen && !c.life.hungUp:
		c.heartbeatDue(now)
	}
	c.dialIfDue(now)
}

// linkNext is when linkDue has something to do.
func (c *Core) linkNext() time.Time {
	l := &c.link
	switch {
	case !l.enabled || c.life.abandoned:
		return time.Time{}
	case l.established():
		return c.heartbeatNext()
	case l.phase == linkOpen:
		return earliest(c.heartbeatNext(), c.abandonAt())
	case l.phase == linkDialing:
		return earliest(l.dialBy, c.abandonAt())
	}
	return earliest(l.dialAt, c.abandonAt())
}
