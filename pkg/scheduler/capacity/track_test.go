package capacity

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// Nodes that are followed are known in every tick as they would be read: with what the
// instances request that exist, and what is reserved.
func TestTrackedNodesNeedNotBeReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, functions := newCluster(rapid.IntRange(1, 4).Draw(t, "nodes"), 100), callers()
		functions = slices.DeleteFunc(functions, func(f *caller) bool { return f.shape.Where != "" || f.pool() })
		c.Track("", placement.Candidates{Nodes: slices.Clone(c.nodes)})
		for range rapid.IntRange(1, 12).Draw(t, "ticks") {
			c.end(t)
			c.now = c.now.Add(testTick)
			for _, key := range c.Leaving() {
				if c.instances[key] == nil {
					c.Left(key)
				}
			}
			c.BeginTick(c.now)
			for _, f := range functions {
				if got, want := c.Room(f.shape), placement.Room(c.read(), f.shape.Requests); got != want {
					t.Fatalf("room for %d instances of %s, want %d", got, f.uid, want)
				}
			}
			for _, f := range functions {
				f.missing = rapid.IntRange(0, 3).Draw(t, "wanted")
				for f.missing > 0 && c.place(t, f) {
					f.missing--
				}
				c.makeRoom(t, f)
			}
			if got, want := c.site("").Nodes(), c.read(); !slices.Equal(got, want) {
				t.Fatalf("the nodes are %+v, want %+v", got, want)
			}
		}
	})
}

// end lets some instances go, and reports it.
func (c *cluster) end(t *rapid.T) {
	for _, key := range keysOf(c) {
		if in := c.instances[key]; rapid.Bool().Draw(t, "ends") {
			delete(c.instances, key)
			c.Ended(in.Node, in.Requests)
		}
	}
}

// read are the nodes as they are now.
func (c *cluster) read() []placement.Node {
	nodes := slices.Clone(c.nodes)
	for i := range nodes {
		nodes[i].Requested = c.requested(nodes[i].Name, false).Plus(c.reserved(nodes[i].Name))
	}
	return nodes
}
