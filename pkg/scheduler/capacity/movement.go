package capacity

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// movement knows when something last moved on each node, as looks at the nodes a tick
// apart show it: what is requested of a node changes with every instance or pod that is
// placed there, leaves or ends. While nothing moves on the nodes that could hold an
// instance, to wait for room there is in vain. Its zero value knows nothing.
type movement struct {
	looked time.Time
	nodes  map[string]lastMove
}

// lastMove is how a node was at the last look, and when it had last changed.
type lastMove struct {
	allocatable, requested placement.Amount
	at                     time.Time
}

// begin begins the looks of one tick. What was known before a pause of more than
// a few ticks is forgotten, which it tells: nobody knows what moved meanwhile.
func (m *movement) begin(now time.Time, tick time.Duration) (forgot bool) {
	if forgot = now.Sub(m.looked) > forgetMovesAfter*tick; forgot {
		m.nodes = make(map[string]lastMove)
	}
	m.looked = now
	return forgot
}

const forgetMovesAfter = 10

// look compares a node with how it was. A change, and a node that was not known, moved
// since the tick before.
func (m *movement) look(n placement.Node, since time.Time) {
	last, known := m.nodes[n.Name]
	if !known || last.allocatable != n.Allocatable || last.requested != n.Requested {
		m.nodes[n.Name] = lastMove{n.Allocatable, n.Requested, later(last.at, since)}
	}
}

// touch notes that something moved on a node at a time: an instance became idle, or
// one is on its way there or leaves.
func (m *movement) touch(node string, at time.Time) {
	last := m.nodes[node]
	last.at = later(last.at, at)
	m.nodes[node] = last
}

// last is when something last moved on the node; the zero time if it is not known.
func (m *movement) last(node string) time.Time { return m.nodes[node].at }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
