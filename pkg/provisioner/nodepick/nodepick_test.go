package nodepick

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPickIsRandomAmongThoseThatFit(t *testing.T) {
	nodes := []Node{
		{Name: "full", Allocatable: Amount{MilliCPU: 1000, Memory: 1 << 30}, Requested: Amount{MilliCPU: 950, Memory: 0}},
		{Name: "a", Allocatable: Amount{MilliCPU: 1000, Memory: 1 << 30}},
		{Name: "small", Allocatable: Amount{MilliCPU: 1000, Memory: 1 << 20}},
		{Name: "b", Allocatable: Amount{MilliCPU: 1000, Memory: 1 << 30}},
	}
	r := rand.New(rand.NewPCG(1, 2))
	picked := map[string]int{}
	for range 1000 {
		i, rejected := Pick(nodes, Amount{MilliCPU: 100, Memory: 64 << 20}, r.IntN)
		picked[nodes[i].Name]++
		if len(rejected) != 0 {
			t.Fatalf("rejected %v although something fits", rejected)
		}
	}
	if len(picked) != 2 || picked["a"] < 400 || picked["b"] < 400 {
		t.Errorf("picked %v", picked)
	}
}

func TestPickSaysWhyNoNodeFits(t *testing.T) {
	nodes := []Node{
		{Name: "busy", Allocatable: Amount{MilliCPU: 1000, Memory: 1 << 30}, Requested: Amount{MilliCPU: 950, Memory: 0}},
		{Name: "small", Allocatable: Amount{MilliCPU: 1000, Memory: 32 << 20}},
	}
	i, rejected := Pick(nodes, Amount{MilliCPU: 100, Memory: 64 << 20}, func(int) int { return 0 })
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
			return Amount{MilliCPU: rapid.Int64Range(0, 4000).Draw(t, "cpu"), Memory: rapid.Int64Range(0, 1<<32).Draw(t, "memory")}
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

func TestPickCountsPodsForThoseWhoWantThem(t *testing.T) {
	full := []Node{{
		Name:        "a",
		Allocatable: Amount{MilliCPU: 1000, Memory: 1000, Pods: 3},
		Requested:   Amount{Pods: 3},
	}}
	first := func(int) int { return 0 }
	i, rejected := Pick(full, Amount{MilliCPU: 1, Pods: 1}, first)
	if i != -1 || len(rejected) != 1 || !strings.Contains(rejected[0].Reason, "3 pods") {
		t.Errorf("picked %d, rejected %v", i, rejected)
	}
	if i, _ := Pick(full, Amount{MilliCPU: 1}, first); i != 0 {
		t.Errorf("picked %d for something that is no pod", i)
	}
}

func TestPickAllocatesNothingWhenSomethingFits(t *testing.T) {
	nodes := make([]Node, 100)
	for i := range nodes {
		nodes[i].Allocatable.MilliCPU = int64(i)
	}
	got := testing.AllocsPerRun(100, func() { Pick(nodes, Amount{MilliCPU: 50}, rand.IntN) })
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
