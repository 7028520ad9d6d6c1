package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership/keeping"
)

func slotKey(fn *function) keeping.Key { return keeping.Key{Slot: fn.slot} }

// settle lets time pass until everything has come to rest, and says what has not
// if that takes too long.
func (w *World) settle() {
	end := w.config.Duration + w.config.Settling
	for w.violation == nil {
		w.until(w.now + time.Second)
		open := w.unsettled()
		if open == "" {
			return
		}
		if w.now >= end && w.violation == nil {
			w.debugInstances()
			w.violate(open, 0)
		}
	}
}

// unsettled says what has not come to rest; empty if all has.
func (w *World) unsettled() string {
	for _, n := range w.gateways {
		if n.up() && n.program.(*gateway).table.Len() > 0 {
			return "every invocation is answered when the faults are over"
		}
	}
	if w.config.Adversarial {
		return ""
	}
	for _, fn := range w.functions {
		if open := w.unsettledFunction(fn); open != "" {
			return open
		}
	}
	return ""
}

func (w *World) unsettledFunction(fn *function) string {
	owner := w.etcd.store.Get(slotKey(fn))
	if owner.Absent {
		return "every slot has an owner when the faults are over"
	}
	for _, n := range w.schedulers {
		s := n.program.(*scheduler)
		f := s.served[fn.index]
		if f.queue.Waiting() > 0 || f.queue.View(s.now()).Out > 0 {
			return "no ticket remains when the faults are over"
		}
		if f.serving != (owner.Value.ID == n.name) || f.term.Heir != "" {
			return "whom etcd names, and nobody else, serves a function when the faults are over"
		}
		if known, _ := s.view.owners.Owner(fn.slot); known.ID != owner.Value.ID {
			return "all schedulers agree on owners when the faults are over"
		}
	}
	for _, n := range w.gateways {
		if to, _, _ := n.program.(*gateway).view.route(fn); to.ID != owner.Value.ID {
			return "all gateways turn to the owner when the faults are over"
		}
	}
	s := w.nodeOf(owner.Value.ID).program.(*scheduler)
	for _, in := range w.platform.running() {
		if in.fn == fn && !s.has(in) {
			return "all instances wait at the owner when the faults are over"
		}
	}
	return ""
}

// has tells whether an instance waits here for calls.
func (s *scheduler) has(in *instance) bool {
	for _, p := range s.served[in.fn.index].pulls {
		if p.cid == in.cid && p.joined {
			return true
		}
	}
	return false
}

// troubled tells whether anything is wrong that keeps a scheduler from giving its
// slots away.
func (w *World) troubled() bool {
	if w.etcd.down || w.etcd.slow > 0 {
		return true
	}
	for _, row := range [][][]bool{w.net.blocked} {
		for _, links := range row {
			for _, blocked := range links {
				if blocked {
					return true
				}
			}
		}
	}
	return false
}

// othersReady tells whether there is another scheduler that could be given slots.
func (w *World) othersReady(than *node) bool {
	ready := 0
	for _, n := range w.schedulers {
		if n == than {
			continue
		}
		if !n.up() || n.paused || n.draining || !n.program.(*scheduler).keeper.ready() {
			return false
		}
		ready++
	}
	return ready > 0
}

// instancesAt notes where instances are, for a trace.
func (w *World) debugInstances() {
	for _, in := range w.platform.running() {
		a := in.node.program.(*agent)
		to := "none"
		if a.session != nil {
			to = a.session.to.name
		}
		w.note(in.node.name, "is at "+to+" "+string(in.cid)+" fn", uint64(in.fn.index), uint64(len(a.attempts)))
		if in.going {
			w.note(in.node.name, "is going", 0, 0)
		}
		if in.ready {
			w.note(in.node.name, "is ready", 0, 0)
		}
		for _, n := range w.schedulers {
			for _, f := range n.program.(*scheduler).served {
				for _, p := range f.pulls {
					if p.cid == in.cid {
						w.note(in.node.name, "is joined at "+n.name, uint64(f.fn.index), 0)
					}
				}
			}
		}
	}
	for _, n := range w.schedulers {
		for _, f := range n.program.(*scheduler).served {
			o, _ := f.scheduler.view.owners.Owner(f.fn.slot)
			v := f.queue.View(n.now()); w.note(n.name, "has tickets", uint64(v.Waiting), uint64(v.Out)); for _, p := range f.pulls { for _, h := range p.out { w.note(n.name, "ticket out with "+p.stream.ends[0].node.name, uint64(w.ledger.byID[h.id].number), uint64(f.queue.View(n.now()).Busy)) } }; w.note(n.name, "knows "+o.ID+" heir "+f.term.Heir, o.Epoch, f.term.Epoch)
		}
	}
	for _, fn := range w.functions {
		w.note("etcd", "owner "+w.etcd.store.Get(slotKey(fn)).Value.ID, uint64(fn.index), 0)
	}
}
