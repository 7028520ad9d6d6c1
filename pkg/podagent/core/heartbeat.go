package core

import "time"

// How often an instance pings its scheduler while it waits for calls, and once it has gone
// quiet.
const (
	pingEvery      = 500 * time.Millisecond
	quietPingEvery = 5 * time.Second
)

const (
	// maxMissed is how many pings in a row may stay unanswered before the agent leaves the
	// scheduler: three heartbeats of silence, counting the one before the first ping.
	maxMissed = 2
	// helloTimeout bounds the answer to a hello. It doubles with every hello that got
	// none, up to helloDoublings times: a scheduler may have to ask the API server about
	// the instance's token.
	helloTimeout   = 2 * time.Second
	helloDoublings = 3
)

// heartbeat detects whether the scheduler at the other end of a stream is alive.
type heartbeat struct {
	helloAnswered bool
	// received and sent are the times of the last message in each direction. pinged is when
	// the last ping was sent; before the first, when the stream opened.
	received, sent, pinged time.Time
	// missed counts pings in a row without an answer.
	missed int
}

func newHeartbeat(now time.Time) heartbeat { return heartbeat{received: now, sent: now, pinged: now} }

// observe records a reply: any reply proves that the scheduler is alive.
func (h *heartbeat) observe(now time.Time) { h.helloAnswered, h.received, h.missed = true, now, 0 }

// pingAt is when the next ping is due. While messages flow in both directions, it is due only
// for its report. Both directions count, since the scheduler watches the agent as well.
func (h *heartbeat) pingAt(every time.Duration) time.Time {
	if h.missed > 0 {
		return h.pinged.Add(every)
	}
	return earliest(earliest(h.received, h.sent).Add(every), h.pinged.Add(reportEvery))
}

func (c *Core) pingEvery() time.Duration {
	if c.idle.quiet || c.params.Spare || c.node.low {
		return quietPingEvery
	}
	return pingEvery
}

// heartbeatNext is when heartbeatDue has something to do.
func (c *Core) heartbeatNext() time.Time {
	l := &c.link
	switch {
	case c.life.hungUp:
		return time.Time{}
	case !l.heartbeat.helloAnswered:
		return l.openedAt.Add(helloTimeout << min(l.unanswered, helloDoublings))
	}
	return l.heartbeat.pingAt(c.pingEvery())
}

// heartbeatDue pings, or leaves a scheduler that does not respond.
func (c *Core) heartbeatDue(now time.Time) {
	l := &c.link
	if now.Before(c.heartbeatNext()) {
		return
	}
	switch {
	case !l.heartbeat.helloAnswered:
		l.unanswered++
	case l.heartbeat.missed < maxMissed:
		c.ping(now)
		return
	}
	c.emit(Drop{l.session})
	l.markUnreachable(now)
	l.retryAny(now)
}

func (c *Core) ping(now time.Time) {
	c.link.heartbeat.missed++
	c.link.heartbeat.pinged = now
	c.sendPing(now)
}

func (c *Core) sendPing(now time.Time) { c.send(now, Ping{Every: c.pingEvery(), Report: c.report()}) }

// reportPingEvery tells the scheduler that it will hear pings at another interval, unless a heartbeat that says so is due.
// It is none itself: the interval may change several times within a moment, which is no silence of the scheduler, or
// again and again, which does not excuse it.
func (c *Core) reportPingEvery(now time.Time) {
	h := &c.link.heartbeat
	if !c.link.established() || c.life.hungUp || !now.Before(h.pingAt(c.pingEvery())) {
		return
	}
	if h.missed == 0 {
		h.pinged = now // it carries the report
	}
	c.sendPing(now)
}
