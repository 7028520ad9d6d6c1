package core

import (
	"slices"
	"time"
)

// shareAfter is how long no scheduler has answered before places are shared. One that is replaced has that long to
// answer before anything changes.
const shareAfter = 100 * time.Millisecond

// shareDue opens the free places to all gateways while no scheduler can move them, so that no call waits beside one. The
// gateway that calls first has the place. A call that comes too late is declined, and waits on at its gateway.
func (c *Core) shareDue(now time.Time) {
	gs := &c.gateways
	if !c.mayShare() {
		gs.forsakenSince = time.Time{}
		if gs.shared {
			c.divide(now)
		}
		return
	}
	if gs.forsakenSince.IsZero() {
		gs.forsakenSince = now
	}
	if at := c.shareNext(); !at.IsZero() && !now.Before(at) {
		gs.shared = true
	}
	if gs.shared {
		c.share(now)
	}
}

// mayShare says that no scheduler answers, and that places are for gateways to have: the last ticket said so.
func (c *Core) mayShare() bool {
	return !c.link.established() && c.life.takesCalls() && c.gateways.lends
}

// shareNext is when sharing begins; zero if it has, or may not. A scheduler that was pulled with may hand out tickets as
// soon as it has read that.
func (c *Core) shareNext() time.Time {
	gs := &c.gateways
	if gs.shared || gs.forsakenSince.IsZero() || c.link.phase == linkOpen {
		return time.Time{}
	}
	return gs.forsakenSince.Add(shareAfter)
}

// share gives each gateway credits for half of the free places at least, and for all at most. What is between changes
// with each call, and costs no frame.
func (c *Core) share(now time.Time) {
	gs, free := &c.gateways, c.params.Concurrency-c.calls.held()
	for _, n := range gs.numbers() {
		switch g := gs.conns[n]; {
		case g.phase != gatewayOpen || g.retired:
		case g.idle > free:
			c.takeBack(now, n, g, g.idle-(free+1)/2)
		case g.granted && 2*g.idle < free:
			c.emit(Lend{n, free - g.idle})
			gs.lend(now, g, free-g.idle)
		}
	}
}

// divide ends the sharing: each free place stays with one gateway, or with none. A scheduler that answers has the rest.
func (c *Core) divide(now time.Time) {
	gs, free := &c.gateways, c.params.Concurrency-c.calls.held()
	gs.shared = false
	holders := slices.DeleteFunc(gs.numbers(), func(n Gateway) bool { return gs.conns[n].idle == 0 })
	for i, n := range holders {
		g, left := gs.conns[n], len(holders)-i
		keeps := min(g.idle, (free+left-1)/left)
		free -= keeps
		c.takeBack(now, n, g, g.idle-keeps)
	}
	c.sendPull(now, free)
}
