package placement

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// pick is the slow twin of Index.Pick: it looks at all nodes.
func pick(nodes []Node, want Amount, intn func(n int) int) int {
	var fitting []int
	for i := range nodes {
		if nodes[i].Fits(want) {
			fitting = append(fitting, i)
		}
	}
	if len(fitting) == 0 {
		return -1
	}
	return fitting[intn(len(fitting))]
}

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
		node, ok := NewSite(Candidates{Nodes: nodes}).Pick(Amount{MilliCPU: 100, Memory: 64 << 20}, r.IntN)
		if !ok {
			t.Fatal("nothing is picked although something fits")
		}
		picked[node]++
	}
	if len(picked) != 2 || picked["a"] < 400 || picked["b"] < 400 {
		t.Errorf("picked %v", picked)
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
		i := NewIndex(nodes).Pick(want, func(n int) int { return n - 1 })
		if i < 0 {
			if pick(nodes, want, func(int) int { return 0 }) >= 0 {
				t.Fatal("nothing is picked although something fits")
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
	if i := NewIndex(full).Pick(Amount{MilliCPU: 1, Pods: 1}, first); i != -1 {
		t.Errorf("picked %d", i)
	}
	if i := NewIndex(full).Pick(Amount{MilliCPU: 1}, first); i != 0 {
		t.Errorf("picked %d for something that is no pod", i)
	}
}

func TestPickAllocatesNothingWhenSomethingFits(t *testing.T) {
	nodes := make([]Node, 100)
	for i := range nodes {
		nodes[i].Allocatable.MilliCPU = int64(i)
	}
	site, want := NewSite(Candidates{Nodes: nodes}), Amount{MilliCPU: 50}
	site.Pick(want, rand.IntN)
	got := testing.AllocsPerRun(100, func() { site.Pick(want, rand.IntN) })
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// There is room for as many as can be placed one by one.
func TestRoomIsHowManyCanBePlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(label string, least, most int64) Amount {
			return Amount{
				MilliCPU: rapid.Int64Range(least, most).Draw(t, label+" cpu"),
				Memory:   rapid.Int64Range(least, most).Draw(t, label+" memory"),
				Pods:     rapid.Int64Range(least, most).Draw(t, label+" pods"),
				// Few have these.
				Scalars: ScalarsOf(map[string]int64{
					"a.b/c": max(0, rapid.Int64Range(-most, most).Draw(t, label+" c")),
					"d.e/f": max(0, rapid.Int64Range(-most, most).Draw(t, label+" f")),
				}),
			}
		}
		var nodes []Node
		for range rapid.IntRange(0, 4).Draw(t, "nodes") {
			nodes = append(nodes, Node{Allocatable: amount("allocatable", 0, 40), Requested: amount("requested", 0, 50)})
		}
		want := amount("want", 0, 9)
		if want == (Amount{}) {
			want.Pods = 1
		}
		got := Room(nodes, want)
		placed := 0
		for {
			i := pick(nodes, want, func(int) int { return 0 })
			if i < 0 {
				break
			}
			nodes[i].Requested = nodes[i].Requested.Plus(want)
			placed++
		}
		if got != placed {
			t.Fatalf("there is room for %d, and %d could be placed", got, placed)
		}
	})
}

func TestWhoRequestsNothingHasPlentyOfRoom(t *testing.T) {
	if got := Room([]Node{{}, {Requested: Amount{MilliCPU: 1}}}, Amount{}); got != maxPerNode {
		t.Errorf("got %d, want %d, for the second node has more requested than it has", got, maxPerNode)
	}
}
