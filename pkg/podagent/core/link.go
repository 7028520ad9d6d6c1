package core

import "time"

// Pauses between two tries to reach a scheduler: at most hopefulPause for as long as
// hopefulFor after one was there, because calls wait for it.
const (
	shortestPause = 10 * time.Millisecond
	hopefulPause  = 250 * time.Millisecond
	longestPause  = 2 * time.Second
	hopefulFor    = 10 * time.Second
)

// leastPatience is how long an agent tries to reach a scheduler at least. Beyond it,
// it tries for as long as it would wait for a call.
const leastPatience = time.Minute

const (
	// dialPatience is how long a connection may take. To any scheduler it doubles
	// with each that took too long, up to dialDoublings times: a balancer may
	// have chosen one that hangs, or all may be slow.
	dialPatience  = time.Second
	dialDoublings = 2
)

const (
	// steadyAfter is how long a session must have stood so that the next one
	// starts without a history.
	steadyAfter = time.Second
	// mostHops is how many owners in a row are believed.
	mostHops = 2
	// shunFor is how long an owner that could not be reached is not tried
	// again, unless it has become the owner anew.
	shunFor = time.Second
)

type linkPhase int

const (
	linkApart linkPhase = iota
	linkDialling
	linkOpen
)

// link is the conversation with schedulers, or the search for one.
type link struct {
	patience time.Duration
	// home is whom to turn to if nobody was named; empty for any.
	home    string
	session Session
	phase   linkPhase
	// addr is whom the session is with; empty for any.
	addr string
	// at is when to dial while apart, when to give up while dialling, and since
	// when the stream stands while it is open.
	at time.Time
	// pulse is of a stream that is open.
	pulse pulse

	// next is whom to dial; empty for any. hops counts the owners in a row that
	// were named, and pause is that before the last dial.
	next  string
	hops  int
	pause time.Duration
	// unanswered counts hellos in a row that were not answered in time.
	unanswered int
	// undialled counts connections in a row that took too long.
	undialled int

	// seen is when a scheduler was heard last.
	seen time.Time
	// epoch is the highest that was heard of.
	epoch uint64
	gone  map[string]failure
}

// failure is what is known of an owner that could not be reached.
type failure struct {
	epoch uint64
	until time.Time
}

func newLink(p Params) link {
	l := link{patience: patience(p), next: p.Owner, gone: make(map[string]failure)}
	if p.Spare {
		l.home = p.Owner
	}
	return l
}

// patience is for how long an instance tries to reach a scheduler.
func patience(p Params) time.Duration {
	if p.Spare {
		return sparePatience
	}
	return max(leastPatience, p.BackoffAfter+p.IdleTimeout)
}

func (l *link) begin(now time.Time) { l.seen, l.at = now, now }

// steady tells whether a session was good for long enough.
func (l *link) steady(now time.Time) bool {
	return l.phase == linkOpen && l.pulse.answered && now.Sub(l.at) >= steadyAfter
}

// turn ends a session, or a dial, and goes on with any scheduler, or with the one
// that a spare instance belongs to, after a pause.
func (l *link) turn(now time.Time) {
	if l.steady(now) {
		l.pause = 0
	}
	limit := longestPause
	if now.Sub(l.seen) < hopefulFor {
		limit = hopefulPause
	}
	l.pause = min(max(2*l.pause, shortestPause), limit)
	l.phase, l.next, l.hops, l.at = linkApart, l.home, 0, now.Add(l.pause)
}

// follow ends a session and goes on at once with the owner that was named, if that
// makes sense.
func (l *link) follow(now time.Time, m Moved) {
	if l.steady(now) {
		l.hops, l.pause = 0, 0
	}
	l.epoch = max(l.epoch, m.Epoch)
	failed, known := l.gone[m.Addr]
	shunned := known && m.Epoch <= failed.epoch && now.Before(failed.until)
	if m.Addr == "" || shunned || l.hops >= mostHops || l.home != "" {
		l.turn(now)
		return
	}
	l.phase, l.next, l.hops, l.at = linkApart, m.Addr, l.hops+1, now
}

// shun takes note that an owner is not there. One whose stream only broke is asked
// again if others name it: to be refused takes no time.
func (l *link) shun(now time.Time) {
	if l.addr == "" {
		return
	}
	for addr, f := range l.gone {
		if !now.Before(f.until) {
			delete(l.gone, addr)
		}
	}
	l.gone[l.addr] = failure{epoch: l.epoch, until: now.Add(shunFor)}
}

// hopeless tells whether the agent has tried for long enough.
func (l *link) hopeless(now time.Time) bool {
	return !l.heardNow() && now.Sub(l.seen) >= l.patience
}

func (l *link) heardNow() bool { return l.phase == linkOpen && l.pulse.answered }

// dialIfDue dials if it is time.
func (c *Core) dialIfDue(now time.Time) {
	l := &c.link
	if l.phase != linkApart || c.life.abandoned || l.at.IsZero() || now.Before(l.at) {
		return
	}
	patience := dialPatience
	if l.next == l.home {
		patience <<= min(l.undialled, dialDoublings)
	}
	l.session++
	l.phase, l.addr, l.at = linkDialling, l.next, now.Add(patience)
	c.do(Dial{l.session, l.addr})
}

// Opened introduces the instance and says how things stand.
func (o Opened) happen(c *Core, now time.Time) {
	l := &c.link
	if o.Session != l.session || l.phase != linkDialling {
		return
	}
	l.phase, l.at, l.pulse, l.undialled = linkOpen, now, newPulse(now), 0
	if c.origin.opened {
		c.counts.Reconnects++
	}
	c.origin.opened = true
	c.say(now, c.origin.hello(now, c.params.Spare))
	switch {
	case c.life.goodbye != nil:
		c.say(now, *c.life.goodbye)
	default:
		c.ask(now)
		// The answer to a request to leave may have been lost.
		c.idle.asked = false
	}
	if c.life.hungUp {
		c.hangUp()
	}
}

func (e Lost) happen(c *Core, now time.Time) {
	l := &c.link
	if e.Session != l.session || l.phase == linkApart {
		return
	}
	switch {
	case e.Why == WhyUnknown:
		l.phase = linkApart
		c.abandon(now, e.Detail)
	case c.life.hungUp && l.phase == linkOpen && (c.life.goodbye == nil || e.Why == WhyHeard):
		l.phase = linkApart
		c.end()
	default:
		if l.phase == linkDialling {
			l.shun(now)
		}
		l.turn(now)
	}
}

func (s Said) happen(c *Core, now time.Time) {
	l := &c.link
	if s.Session != l.session || l.phase != linkOpen {
		return
	}
	l.seen, l.unanswered = now, 0
	l.pulse.hear(now)
	s.Reply.heard(c, now)
}

func (w Welcome) heard(c *Core, now time.Time) {
	c.link.epoch = max(c.link.epoch, w.Epoch)
	c.origin.known = true
	if c.params.Spare {
		c.pingIfWelcome(now) // the scheduler learns that it will hear little
	}
}

func (Pong) heard(*Core, time.Time) {}

func (m Moved) heard(c *Core, now time.Time) {
	c.do(Drop{c.link.session})
	c.link.follow(now, m)
}

// say says something if there is a stream; if not, the next hello says all.
func (c *Core) say(now time.Time, m Message) {
	if c.link.phase == linkOpen {
		c.link.pulse.said = now
		c.do(Send{c.link.session, m})
	}
}

func (c *Core) hangUp() {
	if c.link.phase == linkOpen {
		c.do(HangUp{c.link.session})
	}
}

// drop breaks off whatever there is.
func (c *Core) drop() {
	if c.link.phase != linkApart {
		c.do(Drop{c.link.session})
		c.link.phase = linkApart
	}
}

// linkDue gives up what does not answer, asks whether who answered is still there,
// and dials.
func (c *Core) linkDue(now time.Time) {
	l := &c.link
	if l.at.IsZero() || c.life.abandoned {
		return
	}
	if l.hopeless(now) {
		c.drop()
		c.abandon(now, "no scheduler could be reached")
		return
	}
	switch {
	case l.phase == linkDialling && !now.Before(l.at):
		l.undialled++
		c.do(Drop{l.session})
		l.shun(now)
		l.turn(now)
	case l.phase == linkOpen && !c.life.hungUp:
		c.pulseDue(now)
	}
	c.dialIfDue(now)
}

// linkNext is when linkDue has something to do.
func (c *Core) linkNext() time.Time {
	l := &c.link
	switch {
	case l.at.IsZero() || c.life.abandoned:
		return time.Time{}
	case l.heardNow():
		return c.pulseNext()
	case l.phase == linkOpen:
		return earliest(c.pulseNext(), l.seen.Add(l.patience))
	}
	return earliest(l.at, l.seen.Add(l.patience))
}
