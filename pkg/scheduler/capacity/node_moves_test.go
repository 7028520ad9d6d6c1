package capacity

import (
	"fmt"
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
		m.compareAll("", []placement.Node{n}, at(ticks), tick)
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

// A node that is removed, or becomes unready, takes what moved on it along: calls that have waited for
// it wait on for as long as after any other move.
func TestANodeThatLeavesIsAMove(t *testing.T) {
	c := newCluster(2, 100)
	c.nodes[1].Name = "other"
	for _, n := range c.nodes {
		c.add("a", "x", n.Name, 100).busy = true
	}
	want := Want{UID: "f", Namespace: "ns", Shape: Shape{Requests: milli(100)}, Missing: 1, Starved: true, Waiting: 1}
	begun := c.now
	unplaceable := func() bool {
		c.begin(testTick)
		c.gather()
		want.OldestWait = c.now.Sub(begun)
		return c.MakeRoom(want, c.now, c.evict)
	}
	// Something moves on one node, which then leaves.
	for tick := range int64(2 * testPatience / testTick) {
		busy := c.add("a", "x", "other", tick%2)
		busy.busy = true
		if unplaceable() {
			t.Fatalf("unplaceable after %v, while something moves", c.now.Sub(begun))
		}
		delete(c.instances, busy.Key)
	}
	c.nodes = c.nodes[:1]
	left := c.now
	for c.now.Sub(left) < testPatience-testTick {
		if unplaceable() {
			t.Fatalf("unplaceable %v after a node has left", c.now.Sub(left))
		}
	}
	if !unplaceable() {
		t.Error("calls hope for a node that has left")
	}
}

// Nodes of a cluster autoscaler have new names again and again.
func TestNodesThatAreGoneAreForgotten(t *testing.T) {
	const ticks = 1000
	c := newCluster(1, 100)
	for n := range ticks {
		c.nodes[0].Name = fmt.Sprint("n", n)
		c.begin(testTick)
		c.gather()
		c.MakeRoom(Want{UID: "f", Shape: Shape{Requests: milli(200)}, Missing: 1, Starved: true, Waiting: 1}, c.now, c.evict)
	}
	if most := int(keepUnseen/testTick) + 1; len(c.moves.nodes) > most || len(c.moves.wheres[""].nodes) != 1 {
		t.Errorf("%d nodes are kept, and %d of the present ones; want at most %d and 1", len(c.moves.nodes), len(c.moves.wheres[""].nodes), most)
	}
}
