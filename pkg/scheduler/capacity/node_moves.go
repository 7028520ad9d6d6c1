package capacity

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// nodeMoves records when something last changed on each node, by comparing the nodes from tick
// to tick: a node's requests change with every instance or pod that is placed there, leaves or
// ends. While nothing changes on the nodes that could hold an instance, waiting for room there
// is useless. The zero value is empty.
type nodeMoves struct {
	observed time.Time
	nodes    map[string]lastMove
}

// lastMove is how a node was at the last look, and when it had last changed.
type lastMove struct {
	allocatable, requested placement.Amount
	at                     time.Time
}

// beginTick begins the comparison of one tick. After a pause of more than a few ticks it drops
// its state and returns true, because it missed the changes of that time.
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

// markMoved records a change on a node at a time: an instance became idle, starts there or
// leaves.
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

// quietFor is for how long nothing has changed on the nodes that could hold an instance of a
// shape once everything that may go has gone. It is computed once a tick for all functions of the shape.
func (p *Planner) quietFor(of Shape, now time.Time) time.Duration {
	last, known := p.lastMoves[of]
	if !known {
		for _, n := range p.site(of.Where).Nodes() {
			if n.CouldFit(of.Requests) {
				last = later(last, p.moves.lastOn(n.Name))
			}
		}
		p.lastMoves[of] = last
	}
	return now.Sub(last)
}
