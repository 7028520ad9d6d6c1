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
	cs := &c.conns
	if !c.mayShare() {
		cs.forsakenSince = time.Time{}
		if cs.shared {
			c.divide(now)
		}
		return
	}
	if cs.forsakenSince.IsZero() {
		cs.forsakenSince = now
	}
	if at := c.shareNext(); !at.IsZero() && !now.Before(at) {
		cs.shared = true
	}
	if cs.shared {
		c.share(now)
	}
}

// mayShare says that no scheduler answers, and that places are for gateways to have: the last ticket said so.
func (c *Core) mayShare() bool {
	return !c.link.established() && c.life.takesCalls() && c.conns.lends
}

// shareNext is when sharing begins; zero if it has, or may not. A scheduler that was pulled with may hand out tickets as
// soon as it has read that.
func (c *Core) shareNext() time.Time {
	cs := &c.conns
	if cs.shared || cs.forsakenSince.IsZero() || c.link.phase == linkOpen {
		return time.Time{}
	}
	return cs.forsakenSince.Add(shareAfter)
}

// share gives each gateway credits for half of the free places at least, and for all at most. What is between changes
// with each call, and costs no frame.
func (c *Core) share(now time.Time) {
	cs, free := &c.conns, c.params.Concurrency-c.calls.held()
	for _, n := range cs.numbers() {
		switch cn := cs.all[n]; {
		case cn.phase != connOpen || cn.retired:
		case cn.idle > free:
			c.takeBack(now, n, cn, cn.idle-(free+1)/2)
		case cn.granted && 2*cn.idle < free:
			c.emit(Lend{n, free - cn.idle})
			cs.lend(now, cn, free-cn.idle)
		}
	}
}

// divide ends the sharing: each free place stays with one gateway, or with none. A scheduler that answers has the rest.
func (c *Core) divide(now time.Time) {
	cs, free := &c.conns, c.params.Concurrency-c.calls.held()
	cs.shared = false
	holders := slices.DeleteFunc(cs.numbers(), func(n Conn) bool { return cs.all[n].idle == 0 })
	for i, n := range holders {
		cn, left := cs.all[n], len(holders)-i
		keeps := min(cn.idle, (free+left-1)/left)
		free -= keeps
		c.takeBack(now, n, cn, cn.idle-keeps)
	}
	c.sendPull(now, free)
}
