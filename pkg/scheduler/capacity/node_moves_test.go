package capacity

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

func TestWhatMovesOnANode(t *testing.T) {
	const tick = 100 * time.Millisecond
	epoch := time.Unix(1000, 0)
	at := func(ticks int) time.Time { return epoch.Add(time.Duration(ticks) * tick) }
	node := func(requested int64) placement.Node {
		return placement.Node{Name: "n", Allocatable: placement.Amount{MilliCPU: 1000}, Requested: placement.Amount{MilliCPU: requested}}
	}
	var m nodeMoves
	look := func(ticks int, n placement.Node) {
		m.beginTick(at(ticks), tick)
		m.compare(n, at(ticks-1))
	}
	expect := func(what string, want time.Time) {
		t.Helper()
		if got := m.lastOn("n"); !got.Equal(want) {
			t.Errorf("%s: it last moved at %v, want %v", what, got.Sub(epoch), want.Sub(epoch))
		}
	}
	look(1, node(500))
	expect("a node that was not known", at(0))
	for n := 2; n <= 20; n++ {
		look(n, node(500))
	}
	expect("nothing has changed", at(0))
	look(21, node(400))
	expect("an instance has left", at(20))
	look(22, node(500))
	expect("one was placed", at(21))
	look(23, node(500))
	m.markMoved("n", at(19))
	expect("an instance is idle since before", at(21))
	m.markMoved("n", at(23))
	expect("an instance became idle", at(23))
	grown := node(500)
	grown.Allocatable.MilliCPU = 2000
	look(24, grown)
	expect("the node has grown", at(23))
	look(25, grown)
	look(25+maxMissedTicks, grown)
	expect("nobody has looked for a second", at(23))
	look(26+2*maxMissedTicks, grown)
	expect("nobody has looked for longer", at(25+2*maxMissedTicks))
	if !m.lastOn("other").IsZero() {
		t.Error("something moved on a node that is not there")
	}
}
