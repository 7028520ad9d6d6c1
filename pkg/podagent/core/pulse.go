package core

import "time"

// How often a scheduler is asked whether it is there, by an instance that waits for
// calls and by one that has gone quiet.
const (
	pingEvery      = 500 * time.Millisecond
	quietPingEvery = 5 * time.Second
)

const (
	// mostMissed is how many pings may stay without an answer for as long as the
	// next one would take: with what was heard before them, three beats.
	mostMissed = 2
	// helloPatience is how long a scheduler may take to answer a hello. It
	// doubles with every hello that was not answered, up to helloDoublings
	// times: a scheduler that checks a proof may have to ask others.
	helloPatience  = 2 * time.Second
	helloDoublings = 3
)

// pulse tells whether the other end of a stream is there.
type pulse struct {
	// answered says that the hello was.
	answered bool
	// heard and said are when something came and went last, and pinged when the
	// last of the pings went, or when there was one to talk to.
	heard, said, pinged time.Time
	// missed counts the pings that were not answered.
	missed int
}

func newPulse(now time.Time) pulse { return pulse{heard: now, said: now, pinged: now} }

// hear takes note of a reply: any says that the scheduler is there.
func (p *pulse) hear(now time.Time) { p.answered, p.heard, p.missed = true, now, 0 }

// pingAt is when to ask, if it is done every so often: while the two talk anyway, only
// when a report is due. Both must have talked, since the scheduler wants to know the
// same of the agent.
func (p *pulse) pingAt(every time.Duration) time.Time {
	if p.missed > 0 {
		return p.pinged.Add(every)
	}
	return earliest(earliest(p.heard, p.said).Add(every), p.pinged.Add(reportEvery))
}

func (c *Core) pingEvery() time.Duration {
	if c.idle.quiet || c.params.Spare {
		return quietPingEvery
	}
	return pingEvery
}

// pulseNext is when pulseDue has something to do.
func (c *Core) pulseNext() time.Time {
	l := &c.link
	switch {
	case c.life.hungUp:
		return time.Time{}
	case !l.pulse.answered:
		return l.at.Add(helloPatience << min(l.unanswered, helloDoublings))
	}
	return l.pulse.pingAt(c.pingEvery())
}

// pulseDue pings, or gives up a scheduler that is silent.
func (c *Core) pulseDue(now time.Time) {
	l := &c.link
	if now.Before(c.pulseNext()) {
		return
	}
	switch {
	case !l.pulse.answered:
		l.unanswered++
	case l.pulse.missed < mostMissed:
		c.ping(now)
		return
	}
	c.do(Drop{l.session})
	l.shun(now)
	l.turn(now)
}

func (c *Core) ping(now time.Time) {
	c.link.pulse.missed++
	c.link.pulse.pinged = now
	c.say(now, Ping{Every: c.pingEvery(), Report: c.report()})
}

func (c *Core) pingIfWelcome(now time.Time) {
	if c.link.heardNow() && !c.life.hungUp {
		c.ping(now)
	}
}
