package capacity

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// nodeMoves knows when something last moved on each node, as looks at the nodes a tick
// apart show it: what is requested of a node changes with every instance or pod that is
// placed there, leaves or ends. While nothing moves on the nodes that could hold an
// instance, to wait for room there is in vain. Its zero value knows nothing.
type nodeMoves struct {
	observed time.Time
	nodes    map[string]lastMove
}

// lastMove is how a node was at the last look, and when it had last changed.
type lastMove struct {
	allocatable, requested placement.Amount
	at                     time.Time
}

// beginTick begins the looks of one tick. What was known before a pause of more than
// a few ticks is forgotten, which it tells: nobody knows what moved meanwhile.
func (m *nodeMoves) beginTick(now time.Time, tick time.Duration) (forgot bool) {
	if forgot = now.Sub(m.observed) > maxMissedTicks*tick; forgot {
		m.nodes = make(map[string]lastMove)
	}
	m.observed = now
	return forgot
}

const maxMissedTicks = 10

// compare compares a node with how it was. A change, and a node that was not known, moved
// since the tick before.
func (m *nodeMoves) compare(n placement.Node, since time.Time) {
	last, known := m.nodes[n.Name]
	if !known || last.allocatable != n.Allocatable || last.requested != n.Requested {
		m.nodes[n.Name] = lastMove{n.Allocatable, n.Requested, later(last.at, since)}
	}
}

// markMoved notes that something moved on a node at a time: an instance became idle, or
// one is on its way there or leaves.
func (m *nodeMoves) markMoved(node string, at time.Time) {
	last := m.nodes[node]
	last.at = later(last.at, at)
	m.nodes[node] = last
}

// lastOn is when something last moved on the node; the zero time if it is not known.
func (m *nodeMoves) lastOn(node string) time.Time { return m.nodes[node].at }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// observeMoves compares nodes with how they were at the last look, once in a tick.
func (p *Planner) observeMoves(where string, now time.Time) {
	at := p.site(where)
	if at.observed {
		return
	}
	at.observed = true
	since := now.Add(-p.config.Tick)
	for _, n := range at.Nodes() {
		p.moves.compare(n, since)
	}
}

// quietFor is for how long nothing has moved on the nodes that could hold an instance of a
// shape if they were empty. It is computed once in a tick for all functions of the shape.
func (p *Planner) quietFor(of Shape, now time.Time) time.Duration {
	last, known := p.lastMoves[of]
	if !known {
		for _, n := range p.site(of.Where).Nodes() {
			if n.Requested = (placement.Amount{}); n.Fits(of.Requests) {
				last = later(last, p.moves.lastOn(n.Name))
			}
		}
		p.lastMoves[of] = last
	}
	return now.Sub(last)
}
