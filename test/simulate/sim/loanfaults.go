package sim

import "time"

// schedulersGone lets all schedulers die at once, or stand still, while clients call on.
func (c *chaos) schedulersGone() (func(), bool) {
	lasts, paused := c.between(time.Second, 5*time.Second), c.chance(0.4)
	var ends []func()
	for _, n := range c.schedulers {
		switch {
		case !n.up() || n.paused:
		case paused:
			end, _ := c.standStill(n)
			ends = append(ends, end)
		default:
			n.kill(false)
			c.restartLater(n, lasts)
		}
	}
	for _, fn := range c.functions {
		c.keepCalling(fn, pick(c.World, c.gateways), 2, c.now+lasts)
	}
	if len(ends) == 0 {
		return nil, true
	}
	over := false
	resume := func() {
		for _, end := range ends {
			if !over {
				end()
			}
		}
		over = true
	}
	c.at(lasts, resume)
	return resume, true
}

// contend lets clients at all gateways call one function for some seconds: more at a time than
// its instances take.
func (c *chaos) contend() (func(), bool) {
	fn := pick(c.World, c.functions)
	for _, other := range c.functions {
		if !other.limited() && (fn.limited() || other.typical < fn.typical) {
			fn = other
		}
	}
	until := c.now + c.between(3*time.Second, 7*time.Second)
	for _, n := range c.gateways {
		c.keepCalling(fn, n, 1+c.rng.IntN(2*c.config.MaxInstances), until)
	}
	return nil, true
}

// keepCalling lets some clients call a function at a gateway until a time, each again when it has
// its answer.
func (w *World) keepCalling(fn *function, n *node, clients int, until time.Duration) {
	for range clients {
		var again func()
		var last *callRecord
		again = func() {
			if w.now >= until || w.calm {
				return
			}
			if (last == nil || last.answer != unanswered) && n.up() && !n.paused && !n.draining {
				n.do(n.life, false, func() { last = n.program.(*gateway).call(fn, maxQueueTime, 0) })
			}
			w.at(w.between(time.Millisecond, 2*time.Millisecond+fn.typical/4), again)
		}
		w.at(w.between(0, 50*time.Millisecond), again)
	}
}

// cutCalls breaks the connection of an instance to a gateway. What is on its way in one
// direction may still come: in the other one it is lost.
func (c *chaos) cutCalls() (func(), bool) {
	n := pick(c.World, c.gateways)
	if !n.up() {
		return nil, false
	}
	conn := pick(c.World, n.program.(*gateway).agents)
	if conn == nil {
		return nil, false
	}
	s := conn.stream
	switch c.rng.IntN(4) {
	case 0:
		s.breakOff(false)
	case 1:
		s.breakOff(true)
	case 2: // the instance hears at once, and the gateway behind what comes
		s.lose(0, reset)
		s.carry(1, ending{reset})
	case 3:
		s.lose(1, reset)
		s.carry(0, ending{reset})
	}
	return nil, true
}
