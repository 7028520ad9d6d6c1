package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawAmount(t *rapid.T, what string, most int64) Amount {
	return Amount{
		MilliCPU: rapid.Int64Range(0, most).Draw(t, what+" CPU"),
		Memory:   rapid.Int64Range(0, most).Draw(t, what+" memory"),
		Pods:     rapid.Int64Range(0, most).Draw(t, what+" pods"),
		// Few want any.
		Scalars: further("a.b/c", max(0, rapid.Int64Range(-most, most).Draw(t, what+" devices"))).Scalars,
	}
}

// An index picks from the nodes that Pick picks from, and counts the room as Room
// does, whatever is requested and given back.
func TestIndexKnowsWhatALookAtAllNodesTells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		x := NewIndex(nil)
		add := func() {
			n := Node{Name: fmt.Sprint(len(nodes)), Allocatable: drawAmount(t, "node", 8)}
			nodes = append(nodes, n)
			x.Add(n)
		}
		add()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			want := drawAmount(t, "want", 3)
			switch i := rapid.IntRange(0, len(nodes)-1).Draw(t, "node"); rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				add()
			case 1:
				back := Amount{}.Minus(nodes[i].Requested)
				nodes[i].Requested = Amount{}
				x.Request(i, back)
			case 2:
				nodes[i].Requested = nodes[i].Requested.Plus(want)
				x.Request(i, want)
			}
			if got, counted := x.Room(want), Room(nodes, want); got != counted {
				t.Fatalf("room for %d, want %d", got, counted)
			}
			var fitting []int
			for i := range nodes {
				if nodes[i].Fits(want) {
					fitting = append(fitting, i)
				}
			}
			var picked []int
			for lot := range fitting {
				picked = append(picked, x.Pick(want, func(n int) int {
					if n != len(fitting) {
						t.Fatalf("a lot of %d was drawn among %d nodes", n, len(fitting))
					}
					return lot
				}))
			}
			slices.Sort(picked)
			if !slices.Equal(picked, fitting) {
				t.Fatalf("it picks from %v, want %v", picked, fitting)
			}
			if len(fitting) == 0 {
				if x.Pick(want, nil) != -1 {
					t.Fatal("it picks where nothing fits")
				}
			}
		}
	})
}

// With 100,000 nodes a pick costs as much as with few.
func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := NewIndex(slices.Repeat([]Node{{Allocatable: Amount{MilliCPU: 1 << 40}}}, n))
			rng, want := rand.New(rand.NewPCG(1, 1)), Amount{MilliCPU: 100}
			for b.Loop() {
				x.Request(x.Pick(want, rng.IntN), want)
			}
		})
	}
}
