package sim

import "time"

// link is a gateway's stream of tickets to one scheduler.
type link struct {
	gateway *gateway
	addr    string
	stream  *stream
	open    bool
	pause   time.Duration
	// since is when it was opened, in the world's time.
	since time.Duration
}

// linkTo is the link to a scheduler, which is dialled when it is first used.
func (g *gateway) linkTo(addr string) *link {
	for _, l := range g.links {
		if l.addr == addr {
			return l
		}
	}
	l := &link{gateway: g, addr: addr}
	g.links = append(g.links, l)
	l.dial()
	return l
}

func (l *link) dial() {
	if to := l.gateway.world.nodeOf(l.addr); to != nil {
		l.stream = l.gateway.dial(to, openOffers{gateway: l.gateway.name}, l)
	}
}

// send sends if the stream is there. What is offered while it is not is offered
// again when it is.
func (l *link) send(m any) {
	if l.open {
		l.stream.sendTicket(l.gateway.node, m)
	}
}

func (l *link) opened() {
	l.open, l.pause, l.since = true, 0, l.gateway.world.now
	// Whatever was offered before may have been lost.
	l.gateway.reoffer(func(c *call) bool {
		to, _, _ := l.gateway.view.route(c.fn.function)
		return to.Addr == l.addr
	})
}

func (l *link) take(m any) {
	if r, ok := m.(refusal); ok {
		l.gateway.refusedBy(r)
	}
}

func (l *link) closed(closing) {
	l.open = false
	l.pause = min(max(2*l.pause, 20*time.Millisecond), time.Second)
	l.gateway.after(l.pause, l.dial)
}

// accept answers an instance that connects.
func (g *gateway) accept(s *stream, what any) sink {
	if _, ok := what.(openCalls); ok {
		return &agentConn{gateway: g, stream: s}
	}
	return nil
}
