package capacity

import (
	"slices"
	"testing"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// BenchmarkTick is what a tick costs that places ten instances on a thousand nodes.
func BenchmarkTick(b *testing.B) {
	c, of := newCluster(1000, 4000), Shape{Requests: milli(100)}
	b.ReportAllocs()
	for b.Loop() {
		c.now = c.now.Add(testTick)
		c.BeginTick(c.now)
		c.Observe("", placement.Candidates{Nodes: slices.Clone(c.nodes)})
		for range 10 {
			if _, ok := c.Place("f", of, func(int) int { return 0 }); !ok {
				b.Fatal("there is no room")
			}
		}
	}
}
