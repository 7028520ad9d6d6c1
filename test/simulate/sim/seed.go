package sim

import "github.com/windlass-dev/windlass/pkg/ownership"

// seed lets a gateway that cannot read etcd ask a scheduler instead, again and again
// until one has answered.
func (g *gateway) seed() {
	if g.view.read {
		return
	}
	s := &seeding{gateway: g}
	s.stream = g.dial(pick(g.world, g.world.schedulers), openSlots{}, s)
	g.after(ownership.SeedAfter, g.seed)
}

// seeding is a gateway's question to a scheduler who owns what.
type seeding struct {
	gateway *gateway
	stream  *stream
}

func (s *seeding) opened() { s.stream.send(s.gateway.node, askSlots{}) }

func (s *seeding) take(m any) {
	if answer, ok := m.(slots); ok {
		s.gateway.view.seed(answer.known)
		s.stream.close(s.gateway.node)
	}
}

func (s *seeding) closed(closing) {}

// slotsEnd is a scheduler's end of it.
type slotsEnd struct {
	scheduler *scheduler
	stream    *stream
}

func (e *slotsEnd) opened() {}

func (e *slotsEnd) take(any) {
	e.stream.send(e.scheduler.node, slots{known: e.scheduler.view.owners.Clone()})
}

func (e *slotsEnd) closed(closing) {}
