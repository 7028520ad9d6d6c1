package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// stop is what a scheduler does when it is told to: it gives its slots away,
// stays for a while to say who has them, and ends.
func (s *scheduler) stop() {
	w, n, life := s.world, s.node, s.life
	n.note("is told to stop", 0, 0)
	watchful := w.ledger.watchDrain(s)
	exit := func() {
		watchful()
		n.kill(false)
		w.restartLater(n, w.howLong())
	}
	if w.config.Mutation == NoDrain {
		w.at(0, func() { n.do(life, true, exit) })
		return
	}
	s.keeper.drain(func() { s.after(lingers, exit) })
}

// stop is what a gateway does when it is told to.
func (g *gateway) stop() {
	g.note("is told to stop", 0, 0)
	var look func()
	look = func() {
		if len(g.calls) > 0 {
			g.after(100*time.Millisecond, look)
			return
		}
		g.world.at(0, func() {
			g.kill(false)
			g.world.restartLater(g.node, g.world.howLong())
		})
	}
	look()
}

// stop is what an instance does when it is told to.
func (a *agent) stop() { a.step(core.Stop{}) }

// forge claims a call whose token the instance does not know.
func (a *agent) forge(gateway *node, id invoke.ID) {
	f := &forgery{agent: a, id: id}
	f.stream = a.dial(gateway, openAttempt{}, f)
}

// forgery is a claim with a token that was guessed.
type forgery struct {
	agent  *agent
	id     invoke.ID
	stream *stream
}

func (f *forgery) opened() {
	f.stream.send(f.agent.node, claim{id: f.id, token: f.agent.world.token(), cid: f.agent.instance.cid})
}

func (f *forgery) take(any) {}

func (f *forgery) closed(closing) {}

// watchDrain looks at how a scheduler goes that was told to. What it returns is
// called when it has gone: as long as etcd was there and somebody to give them
// to, no slot may have been left without an owner.
func (l *ledger) watchDrain(s *scheduler) func() {
	w, began, faults := l.world, l.world.now, len(l.world.ends)
	fair := !w.troubled()
	return func() {
		if !fair || w.troubled() || len(w.ends) > faults || w.now-began > 6*time.Second || !w.othersReady(s.node) {
			return
		}
		for _, fn := range w.functions {
			owner := w.etcd.store.Get(slotKey(fn))
			if owner.Absent || owner.Value.ID == s.name {
				w.violate("a scheduler that is told to stop gives its slots away", 0)
			}
		}
	}
}
