package sim

import "time"

// planCalls plans the calls of all clients.
func (w *World) planCalls() {
	for range w.config.Invocations {
		w.at(w.between(0, w.config.Duration), w.callOnce)
	}
	w.lookForLate()
}

// callOnce is a client that calls a function at a gateway that takes its
// connection.
func (w *World) callOnce() {
	fn := pick(w, w.functions)
	first := w.rng.IntN(len(w.gateways))
	leaves := time.Duration(0)
	if w.chance(0.1) {
		leaves = w.between(time.Millisecond, 2*time.Second)
	}
	for i := range w.gateways {
		n := w.gateways[(first+i)%len(w.gateways)]
		if n.up() && !n.draining {
			g := n.program.(*gateway)
			n.do(n.life, false, func() { g.call(fn, leaves) })
			return
		}
	}
}

// lookForLate looks for clients that wait for too long.
func (w *World) lookForLate() {
	for _, n := range w.gateways {
		if !n.up() || n.paused {
			continue
		}
		if c := n.program.(*gateway).late(); c != nil {
			w.ledger.broken(c.invocation, RuleInTime)
		}
	}
	if w.violation == nil {
		w.at(500*time.Millisecond, w.lookForLate)
	}
}
