package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// planCalls plans the calls of all clients.
func (w *World) planCalls() {
	for range w.config.Invocations {
		w.at(w.between(0, w.config.Duration), w.callOnce)
	}
	w.lookForLate()
}

// impatient is how many of the clients leave before they must: few, but in some seeds most.
func (w *World) impatient() float64 {
	if w.config.Impatient || w.config.Mood == overload {
		return 0.6
	}
	return 0.15
}

// callOnce is a client that calls a function at a gateway that takes its
// connection.
func (w *World) callOnce() {
	fn := pick(w, w.functions)
	first := w.rng.IntN(len(w.gateways))
	leaves := time.Duration(0)
	if w.chance(w.impatient()) {
		leaves = w.between(time.Millisecond, 2*time.Second)
	}
	for i := range w.gateways {
		n := w.gateways[(first+i)%len(w.gateways)]
		if n.up() && !n.draining {
			g := n.program.(*gateway)
			n.do(n.life, false, func() { g.call(fn, maxQueueTime, leaves) })
			return
		}
	}
}

// lookForLate looks for what should have happened.
func (w *World) lookForLate() {
	for _, n := range w.gateways {
		if !n.up() || n.paused {
			continue
		}
		n.program.(*gateway).overdue()
	}
	for _, fn := range w.functions {
		w.lookForServer(fn)
	}
	w.lookBesideIdle()
	if w.violation == nil {
		w.at(500*time.Millisecond, w.lookForLate)
	}
}

// unservedFor is how long nobody may serve a function while there is somebody who
// could: less long than it takes until somebody else owns it.
const unservedFor = 5 * time.Second

// serves tells whether a function is known and served here.
func (s *scheduler) serves(fn *function) bool {
	f := s.lookup(fn.main())
	return f != nil && f.serving()
}

// able tells whether a scheduler could serve functions.
func (n *node) able() bool { return n.up() && !n.paused && !n.draining }

// lookForServer looks whether somebody serves a function, or could not.
func (w *World) lookForServer(fn *function) {
	ready := false
	for _, n := range w.schedulers {
		if !n.able() {
			continue
		}
		s := n.program.(*scheduler)
		if ready = ready || s.keeper.ready(); s.serves(fn) {
			fn.served, fn.server = w.now, n
		}
	}
	if !ready || fn.main() == nil || w.troubled() || w.etcd.rewritten > 0 && w.now-w.etcd.rewritten < aftermath {
		fn.served = w.now
	}
	if w.now-max(fn.served, fn.standbySince()) > unservedFor {
		w.describe()
		w.violate(RuleStandIn, 0)
	}
}

// standbySince is since when nothing has changed about who is to serve a function: its last
// server, and of the others the first that is able and those that come before it. A scheduler
// that starts knows nothing of the silence of another, so each of these faults takes its time.
func (f *function) standbySince() time.Duration {
	w := f.world
	var members []ownership.Member
	for _, n := range w.schedulers {
		members = append(members, ownership.Member{ID: n.name})
	}
	since := time.Duration(0)
	if f.server != nil {
		since = f.server.turned
	}
	for _, m := range ownership.Ranked(f.slot, members) {
		n := w.nodeOf(m.ID)
		since = max(since, n.turned)
		if n.able() && n != f.server {
			break
		}
	}
	return since
}
