package nodepick

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPickIsRandomAmongThoseThatFit(t *testing.T) {
	nodes := []Node{
		{Name: "full", Allocatable: Amount{1000, 1 << 30}, Requested: Amount{950, 0}},
		{Name: "a", Allocatable: Amount{1000, 1 << 30}},
		{Name: "small", Allocatable: Amount{1000, 1 << 20}},
		{Name: "b", Allocatable: Amount{1000, 1 << 30}},
	}
	r := rand.New(rand.NewPCG(1, 2))
	picked := map[string]int{}
	for range 1000 {
		i, rejected := Pick(nodes, Amount{100, 64 << 20}, r.IntN)
		picked[nodes[i].Name]++
		if len(rejected) != 2 {
			t.Fatalf("rejected %v", rejected)
		}
	}
	if len(picked) != 2 || picked["a"] < 400 || picked["b"] < 400 {
		t.Errorf("picked %v", picked)
	}
}

func TestPickSaysWhyNoNodeFits(t *testing.T) {
	nodes := []Node{
		{Name: "busy", Allocatable: Amount{1000, 1 << 30}, Requested: Amount{950, 0}},
		{Name: "small", Allocatable: Amount{1000, 32 << 20}},
	}
	i, rejected := Pick(nodes, Amount{100, 64 << 20}, func(int) int { return 0 })
	if i != -1 || len(rejected) != 2 {
		t.Fatalf("picked %d, rejected %v", i, rejected)
	}
	for j, want := range []string{"50m of 1000m free", "32 of 32 MiB free"} {
		if !strings.Contains(rejected[j].Reason, want) {
			t.Errorf("%s: %q does not say %q", rejected[j].Node, rejected[j].Reason, want)
		}
	}
}

func TestPickNeverOverfillsANode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Custom(func(t *rapid.T) Amount {
			return Amount{rapid.Int64Range(0, 4000).Draw(t, "cpu"), rapid.Int64Range(0, 1<<32).Draw(t, "memory")}
		})
		nodes := make([]Node, rapid.IntRange(0, 5).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i] = Node{Allocatable: amount.Draw(t, "allocatable"), Requested: amount.Draw(t, "requested")}
		}
		want := amount.Draw(t, "want")
		i, rejected := Pick(nodes, want, func(n int) int { return n - 1 })
		if i < 0 {
			if len(rejected) != len(nodes) {
				t.Fatalf("%d of %d nodes have a reason", len(rejected), len(nodes))
			}
			return
		}
		after := nodes[i].Requested.Plus(want)
		if after.MilliCPU > nodes[i].Allocatable.MilliCPU || after.Memory > nodes[i].Allocatable.Memory {
			t.Fatalf("node %+v cannot hold %+v", nodes[i], want)
		}
	})
}
