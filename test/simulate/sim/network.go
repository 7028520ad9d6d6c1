package sim

import "time"

// sink is one end of a stream.
type sink interface {
	// opened says that the other side has accepted. Only the side that dials
	// is told.
	opened()
	take(m any)
	// closed says that nothing more will come.
	closed(how closing)
}

// closing is how a stream ended.
type closing int

const (
	hungUp  closing = iota + 1 // the other side ended it
	reset                      // it broke
	refused                    // nobody listens there
)

// opening and acceptance are the messages by which a stream comes about, ending
// is the last one.
type (
	opening    struct{ what any }
	acceptance struct{}
	ending     struct{ how closing }
)

// stream is a connection: in each direction, messages arrive in order until it
// breaks. A partition holds them back; loss only delays them.
type stream struct {
	world *World
	ends  [2]streamEnd
	// accepted says that the one who dialled knows that it is open.
	accepted bool
}

type streamEnd struct {
	node *node
	life int
	sink sink
	// gone says that this side is done with the stream.
	gone bool
	// coming are the messages that travel to this side, and due is when the last one arrives. Each
	// arrival takes the first: what a partition has held arrives before what was sent after it.
	coming []any
	due    time.Duration
	// held are messages to this side that a partition keeps.
	held []any
}

// dial opens a stream to a node. What the two sides say to each other begins
// when the sink is told that it is opened.
func (n *node) dial(to *node, what any, s sink) *stream {
	c := &stream{world: n.world}
	c.ends[0] = streamEnd{node: n, life: n.life, sink: s}
	c.ends[1] = streamEnd{node: to, life: to.life}
	n.streams = append(n.streams, c)
	n.world.net.streams = append(n.world.net.streams, c)
	c.send(n, opening{what})
	n.after(dialPatience, func() {
		if !c.accepted {
			c.lose(0, reset)
		}
	})
	return c
}

// dialPatience is how long somebody may take to accept a stream.
const dialPatience = 5 * time.Second

// side is the index of the end that a node has.
func (c *stream) side(n *node) int {
	if c.ends[0].node == n {
		return 0
	}
	return 1
}

// send sends a message from a node to the other end.
func (c *stream) send(from *node, m any) {
	side := c.side(from)
	if c.ends[side].gone {
		return
	}
	c.carry(1-side, m)
}

// sendTicket sends what TCP would carry like everything else. A simulation that is
// adversarial may lose it, send it twice, or let what was sent later overtake it.
func (c *stream) sendTicket(from *node, m any) {
	if !c.world.config.Adversarial || c.world.calm {
		c.send(from, m)
		return
	}
	side := c.side(from)
	copies := 1
	switch c.world.rng.IntN(8) {
	case 6:
		copies = 0
	case 7:
		copies = 2
	}
	for range copies {
		if !c.ends[side].gone {
			c.world.at(c.world.between(0, 50*time.Millisecond), func() { c.arrive(1-side, m) })
		}
	}
}

// close ends the stream at a node's end, behind what it has sent.
func (c *stream) close(from *node) {
	side := c.side(from)
	if c.ends[side].gone {
		return
	}
	c.ends[side].gone = true
	from.streams = without(from.streams, c)
	c.carry(1-side, ending{hungUp})
}

// abandon is the end of a node that had this stream.
func (c *stream) abandon(n *node, dark bool) {
	side := c.side(n)
	c.ends[side].gone = true
	if dark {
		c.world.at(keepAlive, func() { c.lose(1-side, reset) })
		return
	}
	c.carry(1-side, ending{reset})
}

// keepAlive is when a connection notices at the latest that nobody is at its
// other end, as gRPC does by its own pings.
const keepAlive = 15 * time.Second

// breakOff resets the stream. If halfOpen, only one side is told: the other finds
// out when it sends something, or by its own pings.
func (c *stream) breakOff(halfOpen bool) {
	told := c.world.rng.IntN(2)
	c.lose(told, reset)
	if halfOpen {
		c.world.disturbFor(keepAlive)
		c.world.at(keepAlive, func() { c.lose(1-told, reset) })
		return
	}
	c.lose(1-told, reset)
}

// carry lets a message travel to one end.
func (c *stream) carry(to int, m any) {
	c.ends[to].coming = append(c.ends[to].coming, m)
	c.travel(to)
}

// travel lets one message more arrive at one end.
func (c *stream) travel(to int) {
	end := &c.ends[to]
	from := c.ends[1-to].node.machine
	end.due = max(end.due, c.world.now+c.world.net.delay(from, end.node.machine))
	c.world.at(end.due-c.world.now, func() {
		m := end.coming[0]
		end.coming = end.coming[1:]
		c.arrive(to, m)
	})
}

// arrive is the arrival of a message at a machine.
func (c *stream) arrive(to int, m any) {
	end, other := &c.ends[to], &c.ends[1-to]
	if c.world.net.blocked[other.node.machine][end.node.machine] || len(end.held) > 0 {
		end.held = append(end.held, m)
		return
	}
	n := end.node
	if _, first := m.(opening); first {
		end.life = n.life
	}
	if n.life != end.life || !n.up() || end.gone {
		if _, over := m.(ending); !over && !n.dark && !other.gone {
			how := reset
			if _, first := m.(opening); first {
				how = refused
			}
			c.carry(1-to, ending{how})
		}
		return
	}
	if _, first := m.(opening); first {
		n.streams = append(n.streams, c) // a kernel resets what its process dies without having accepted
	}
	n.do(end.life, false, func() { c.handle(to, m) })
}

// handle lets a process take a message.
func (c *stream) handle(to int, m any) {
	end := &c.ends[to]
	if end.gone {
		return
	}
	switch m := m.(type) {
	case opening:
		end.sink = end.node.program.accept(c, m.what)
		if end.sink == nil {
			end.gone = true
			end.node.streams = without(end.node.streams, c)
			c.carry(1-to, ending{refused})
			return
		}
		c.carry(1-to, acceptance{})
	case acceptance:
		c.accepted = true
		end.sink.opened()
	case ending:
		c.lose(to, m.how)
	default:
		end.sink.take(m)
	}
}

// lose tells one end that the stream is over.
func (c *stream) lose(side int, how closing) {
	end := &c.ends[side]
	if end.gone || end.sink == nil {
		return
	}
	end.gone = true
	end.node.streams = without(end.node.streams, c)
	end.node.do(end.life, false, func() { end.sink.closed(how) })
}

// network is all machines and the ways between them.
type network struct {
	world   *World
	streams []*stream
	// blocked is which direction of which link carries nothing, slow what it
	// adds, and lossy the part of the messages that must be sent again.
	blocked [][]bool
	slow    [][]time.Duration
	lossy   [][]float64
}

func newNetwork(w *World, machines int) *network {
	n := &network{world: w}
	for range machines {
		n.blocked = append(n.blocked, make([]bool, machines))
		n.slow = append(n.slow, make([]time.Duration, machines))
		n.lossy = append(n.lossy, make([]float64, machines))
	}
	return n
}

// retransmit is how long TCP waits before it sends again at first.
const retransmit = 200 * time.Millisecond

// mostLate is the longest that a message which is lost again and again takes.
const mostLate = 7 * time.Second

// delay is how long the next message takes.
func (n *network) delay(from, to int) time.Duration {
	d := 20*time.Microsecond + time.Duration(n.world.rng.Int64N(int64(300*time.Microsecond)))
	if slow := n.slow[from][to]; slow > 0 {
		d += time.Duration(n.world.rng.Int64N(int64(slow)))
	}
	if lossy := n.lossy[from][to]; lossy > 0 {
		for again := retransmit; n.world.chance(lossy) && again < 4*time.Second; again *= 2 {
			d += again
		}
	}
	return d
}

// block cuts one direction of a link.
func (n *network) block(from, to int) { n.blocked[from][to] = true }

// unblock mends it: what was held arrives once TCP tries again.
func (n *network) unblock(from, to int) {
	if !n.blocked[from][to] {
		return
	}
	n.blocked[from][to] = false
	live := n.streams[:0]
	for _, c := range n.streams {
		if c.ends[0].gone && c.ends[1].gone {
			continue
		}
		live = append(live, c)
		for side := range c.ends {
			if c.ends[side].node.machine == to && c.ends[1-side].node.machine == from {
				c.release(side)
			}
		}
	}
	clear(n.streams[len(live):])
	n.streams = live
}

// release lets go of what a partition has held.
func (c *stream) release(side int) {
	end := &c.ends[side]
	held := end.held
	end.held = nil
	if len(held) == 0 {
		return
	}
	again := time.Duration(c.world.rng.Int64N(int64(retransmit)))
	end.due = max(end.due, c.world.now+again)
	end.coming = append(held, end.coming...)
	for range held {
		c.travel(side)
	}
}

// without is a list without one element, whose order does not matter.
func without[T comparable](list []T, gone T) []T {
	for i, each := range list {
		if each == gone {
			last := len(list) - 1
			list[i] = list[last]
			var none T
			list[last] = none
			return list[:last]
		}
	}
	return list
}
