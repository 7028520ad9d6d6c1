package capacity

import (
	"maps"
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
	// wheres are by the Where of the functions that ask.
	wheres map[string]*whereMoves
}

// lastMove is how a node was at the last look, when that was, and when it had last changed.
type lastMove struct {
	allocatable, requested placement.Amount
	looked, at             time.Time
}

// whereMoves are the nodes of one Where, each with when it was last there, when that was looked at, and
// when a node had last left: it became unready, was cordoned or removed. What was to move there has moved.
type whereMoves struct {
	nodes        map[string]time.Time
	looked, left time.Time
}

// keepUnseen is for how long a node is kept that no Where has had since, and a Where that nobody has
// asked for.
const keepUnseen = time.Minute

// beginTick begins the comparison of one tick. After a pause of more than a few ticks it drops
// its state and returns true, because it missed the changes of that time.
func (m *nodeMoves) beginTick(now time.Time, tick time.Duration) (forgot bool) {
	if forgot = now.Sub(m.observed) > maxMissedTicks*tick; forgot {
		m.nodes, m.wheres = make(map[string]lastMove), make(map[string]*whereMoves)
	}
	m.observed = now
	maps.DeleteFunc(m.nodes, func(_ string, n lastMove) bool { return now.Sub(later(n.looked, n.at)) > keepUnseen })
	maps.DeleteFunc(m.wheres, func(_ string, at *whereMoves) bool { return now.Sub(at.looked) > keepUnseen })
	return forgot
}

const maxMissedTicks = 10

// compareAll compares the nodes of a Where with how they were.
func (m *nodeMoves) compareAll(where string, nodes []placement.Node, now time.Time, tick time.Duration) {
	at, since := m.wheres[where], now.Add(-tick)
	if at == nil {
		at = &whereMoves{nodes: make(map[string]time.Time)}
		m.wheres[where] = at
	}
	at.looked = now
	for _, n := range nodes {
		m.compare(n, now, since)
		at.nodes[n.Name] = now
	}
	if len(at.nodes) > len(nodes) {
		maps.DeleteFunc(at.nodes, func(_ string, there time.Time) bool { return there.Before(now) })
		at.left = since
	}
}

// compare compares a node with how it was. A change, and a node that was not known, moved
// since the tick before.
func (m *nodeMoves) compare(n placement.Node, now, since time.Time) {
	last, known := m.nodes[n.Name]
	if !known || last.allocatable != n.Allocatable || last.requested != n.Requested {
		last = lastMove{allocatable: n.Allocatable, requested: n.Requested, at: later(last.at, since)}
	}
	last.looked = now
	m.nodes[n.Name] = last
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
	p.moves.compareAll(where, at.Nodes(), now, p.config.Tick)
}

// quietFor is for how long nothing has changed on the nodes that could hold an instance of a
// shape once everything that may go has gone, and no node has left them. It is computed once a tick
// for all functions of the shape, after observeMoves.
func (p *Planner) quietFor(of Shape, now time.Time) time.Duration {
	last, known := p.lastMoves[of]
	if !known {
		last = p.moves.wheres[of.Where].left
		for _, n := range p.site(of.Where).Nodes() {
			if n.CouldFit(of.Requests) {
				last = later(last, p.moves.lastOn(n.Name))
			}
		}
		p.lastMoves[of] = last
	}
	return now.Sub(last)
}
