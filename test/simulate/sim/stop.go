package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// stop is what a scheduler does when it is told to: it gives its slots away,
// stays for a while to say who has them, and ends.
func (s *scheduler) stop() {
	w, n := s.world, s.node
	n.note("is told to stop", 0, 0)
	watchful := w.watchDrain(s)
	s.spares.drop()
	exit := func() {
		n.kill(false)
		w.chaos.restartLater(n, w.chaos.howLong())
	}
	s.keeper.drain(func() {
		watchful()
		s.after(ownership.HandoverDelay, exit)
	})
}

// stop is what a gateway does when it is told to.
func (g *gateway) stop() {
	g.note("is told to stop", 0, 0)
	g.returnLoans()
	var look func()
	look = func() {
		if len(g.calls) > 0 {
			g.after(100*time.Millisecond, look)
			return
		}
		g.world.at(0, func() {
			g.kill(false)
			g.world.chaos.restartLater(g.node, g.world.chaos.howLong())
		})
	}
	look()
}

// stop is what an instance does when it is told to.
func (a *agent) stop() { a.step(core.Stop{}) }

// forge claims a call whose token the instance does not know.
func (a *agent) forge(gateway *node, id invocation.ID) {
	f := &forgery{agent: a, id: id}
	f.stream = a.dial(gateway, openCalls{}, f)
}

// forgery is a connection whose claim has a token that was guessed, and which says that the
// instance has lent something.
type forgery struct {
	agent  *agent
	id     invocation.ID
	stream *stream
}

func (f *forgery) opened() {
	f.send(helloFrame{cid: f.agent.instance.cid})
	f.send(lendFrame{1})
	f.send(claimFrame{call: 1, id: f.id, token: f.agent.world.token()})
	f.send(lendFrame{1})
}

func (f *forgery) send(m any) { f.stream.send(f.agent.node, m) }

func (f *forgery) take(m any) {
	if _, refused := m.(refusedFrame); refused {
		f.stream.close(f.agent.node)
	}
}

func (f *forgery) closed(closing) {}

// watchDrain looks at how a scheduler goes that was told to. What it returns is
// called when it ends its lease: as long as nothing else was wrong and somebody was
// there to take them, the slots that it had in etcd must have gone to others.
func (w *World) watchDrain(s *scheduler) func() {
	struck, fair := w.struck, !w.troubled() && w.othersReady(s.node)
	var had []*function
	for _, fn := range w.functions {
		if key := w.etcd.store.Get(slotKey(fn)); key.Value.ID == s.name && key.Lease == s.keeper.core.Lease() {
			had = append(had, fn)
		}
	}
	return func() {
		if !fair || w.struck != struck || w.troubled() || !w.othersReady(s.node) {
			return
		}
		for _, fn := range had {
			if owner := w.etcd.store.Get(slotKey(fn)); owner.Absent || owner.Value.ID == s.name {
				w.violate(RuleHandedOver, 0)
			}
		}
	}
}

// troubled tells whether something is wrong now that may keep a scheduler from
// giving its slots away.
func (w *World) troubled() bool {
	if w.etcd.down || w.etcd.slow > 0 || w.now < w.etcd.noticed {
		return true
	}
	for from, links := range w.net.blocked {
		for to, blocked := range links {
			if blocked || w.net.lossy[from][to] > 0 || w.net.slow[from][to] > 0 {
				return true
			}
		}
	}
	return false
}

// othersReady tells whether all other schedulers could be given slots.
func (w *World) othersReady(than *node) bool {
	for _, n := range w.schedulers {
		if n != than && (!n.up() || n.paused || n.draining || !n.program.(*scheduler).keeper.ready()) {
			return false
		}
	}
	return len(w.schedulers) > 1
}
