package placement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is requested and given back, a site picks a node exactly if a look at all
// nodes finds one, of those that are not avoided if it can, and one that has room.
func TestASitePicksWhereThereIsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(prefix string) []Node {
			nodes := make([]Node, rapid.IntRange(0, 4).Draw(t, prefix))
			for i := range nodes {
				nodes[i] = Node{Name: fmt.Sprint(prefix, i), Allocatable: drawAmount(t, "node", 8), Fixed: drawAmount(t, "fixed", 2)}
				nodes[i].Requested = nodes[i].Fixed
			}
			return nodes
		}
		ordinary, avoided := draw("ordinary"), draw("avoided")
		site := NewSite(Candidates{Nodes: append([]Node(nil), ordinary...), Avoided: append([]Node(nil), avoided...)})
		find := func(name string) *Node {
			for _, nodes := range [][]Node{ordinary, avoided} {
				for i := range nodes {
					if nodes[i].Name == name {
						return &nodes[i]
					}
				}
			}
			return nil
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			want := drawAmount(t, "want", 3)
			wantOrdinary := pick(ordinary, want, func(int) int { return 0 }) >= 0
			if couldFit := max(Room(emptied(ordinary), want), Room(emptied(avoided), want)) > 0; site.CouldFit(want) != couldFit {
				t.Fatalf("an empty node could hold %+v: %v, want %v", want, !couldFit, couldFit)
			}
			wantAny := wantOrdinary || pick(avoided, want, func(int) int { return 0 }) >= 0
			if first := Room(ordinary, want); site.Room(want) == 0 && (first > 0 || wantAny) {
				continue // there was none at the first look
			}
			name, ok := site.Pick(want, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "lot") })
			if ok != wantAny {
				t.Fatalf("picked %q, %v, want %v", name, ok, wantAny)
			}
			if !ok {
				continue
			}
			n := find(name)
			if !n.Fits(want) || !site.Fits(name, want, Amount{}) || wantOrdinary != (name[0] == 'o') {
				t.Fatalf("picked %s, which has %+v, for %+v", name, *n, want)
			}
			n.Requested = n.Requested.Plus(want)
			site.Request(name, want)
		}
	})
}

// emptied are nodes without the pods that may go.
func emptied(nodes []Node) []Node {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Requested = nodes[i].Fixed
	}
	return nodes
}

func TestASiteKnowsNothingOfOtherNodes(t *testing.T) {
	site := NewSite(Candidates{})
	site.Request("gone", Amount{MilliCPU: 1})
	if site.Fits("gone", Amount{}, Amount{}) {
		t.Error("something fits on a node that is not there")
	}
	if _, ok := site.Pick(Amount{}, nil); ok || site.Explain(Amount{}) != "there is no node" {
		t.Errorf("it says %q", site.Explain(Amount{}))
	}
}
