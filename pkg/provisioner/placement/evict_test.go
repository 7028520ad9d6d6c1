package placement

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWhatGoesFirst(t *testing.T) {
	full := func(name string) Node {
		return Node{Name: name, Allocatable: Amount{MilliCPU: 1000, Memory: 1000}, Requested: Amount{MilliCPU: 1000, Memory: 1000}}
	}
	idle := func(node string, amount int64, seconds int) Idle {
		return Idle{Node: node, Requests: Amount{MilliCPU: amount, Memory: amount}, For: time.Duration(seconds) * time.Second}
	}
	tests := map[string]struct {
		nodes []Node
		idle  []Idle
		want  int64
		evict int
	}{
		"nothing is idle":                   {[]Node{full("a")}, nil, 100, -1},
		"there is no node":                  {nil, []Idle{idle("gone", 500, 9)}, 100, -1},
		"the longest idle goes":             {[]Node{full("a")}, []Idle{idle("a", 100, 1), idle("a", 100, 3), idle("a", 100, 2)}, 100, 1},
		"on whatever node it is":            {[]Node{full("a"), full("b")}, []Idle{idle("a", 100, 1), idle("b", 100, 3)}, 100, 1},
		"of two equals the first listed":    {[]Node{full("a")}, []Idle{idle("a", 100, 3), idle("a", 100, 3)}, 100, 0},
		"one that makes too little stays":   {[]Node{full("a")}, []Idle{idle("a", 50, 9), idle("a", 100, 1)}, 100, 1},
		"two must go, the longer idle now":  {[]Node{full("a")}, []Idle{idle("a", 50, 1), idle("a", 50, 2)}, 100, 1},
		"one node needs fewer than another": {[]Node{full("a"), full("b")}, []Idle{idle("a", 50, 9), idle("a", 50, 9), idle("b", 100, 1)}, 100, 2},
		"nodes are not added up":            {[]Node{full("a"), full("b")}, []Idle{idle("a", 50, 9), idle("b", 50, 9)}, 100, -1},
		"it could never fit":                {[]Node{full("a")}, []Idle{idle("a", 1000, 9)}, 1001, -1},
		"what is free already counts": {
			[]Node{{Name: "a", Allocatable: Amount{MilliCPU: 1000, Memory: 1000}, Requested: Amount{MilliCPU: 940, Memory: 940}}},
			[]Idle{idle("a", 50, 9)}, 100, 0,
		},
		"memory is looked at as well as CPU": {
			[]Node{full("a")},
			[]Idle{{Node: "a", Requests: Amount{MilliCPU: 500, Memory: 10}, For: 9}, {Node: "a", Requests: Amount{MilliCPU: 100, Memory: 100}, For: 1}}, 100, 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := firstOut(tt.nodes, tt.idle, Amount{MilliCPU: tt.want, Memory: tt.want}); got != tt.evict {
				t.Errorf("evicts %d, want %d", got, tt.evict)
			}
		})
	}
}

// firstOut is the instance that an EvictionPlanner lets go first; -1 if none helps.
func firstOut(nodes []Node, idle []Idle, want Amount) int {
	_, out, ok := NewEvictionPlanner(slices.Clone(nodes), idle).Find(EvictionRequest{Want: want})
	if !ok || len(out) == 0 {
		return -1
	}
	return out[0]
}

// To evict what a planner says, over and over, makes room if anything could, and
// stops at once where it did.
func TestEvictUntilThereIsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]Node, rapid.IntRange(1, 3).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i] = Node{Name: string(rune('a' + i)), Allocatable: Amount{MilliCPU: 100, Memory: 100}}
		}
		idle := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Idle {
			return Idle{
				Node:     nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "node")].Name,
				Requests: Amount{MilliCPU: rapid.Int64Range(1, 60).Draw(t, "cpu"), Memory: rapid.Int64Range(1, 60).Draw(t, "memory")},
				For:      time.Duration(rapid.IntRange(1, 5).Draw(t, "for")),
			}
		})).Draw(t, "idle")
		want := Amount{MilliCPU: rapid.Int64Range(1, 120).Draw(t, "want"), Memory: 50}
		possible := false
		for i := range nodes {
			busy := Amount{MilliCPU: rapid.Int64Range(0, 100).Draw(t, "busy"), Memory: 0}
			possible = possible || busy.Plus(want).MilliCPU <= 100
			nodes[i].Requested = busy
			for _, in := range idle {
				if in.Node == nodes[i].Name {
					nodes[i].Requested = nodes[i].Requested.Plus(in.Requests)
				}
			}
		}
		fits := func() bool {
			return pick(nodes, want, func(int) int { return 0 }) >= 0
		}
		for !fits() {
			i := firstOut(nodes, idle, want)
			if i < 0 {
				break
			}
			for j := range nodes {
				if nodes[j].Name == idle[i].Node {
					nodes[j] = *without(nodes[j], idle[i])
				}
			}
			idle = append(idle[:i:i], idle[i+1:]...)
		}
		if fits() != possible {
			t.Fatalf("there is room: %v, there could be: %v", fits(), possible)
		}
	})
}

// evict is what an EvictionPlanner is compared with: it looks at everything. It returns the index
// of the instance to evict so that want fits on a node where it did not: the longest idle one that
// makes enough room alone. If several must go, it returns the first of them, the longest idle one
// on the node where the fewest must. It returns -1 if no eviction helps.
func evict(nodes []Node, idle []Idle, want Amount) int {
	byNode := make(map[string][]int, len(nodes))
	for i, in := range idle {
		byNode[in.Node] = append(byNode[in.Node], i)
	}
	best, fewest := -1, 0
	for _, n := range nodes {
		first, needed := leastEvictions(n, idle, byNode[n.Name], want)
		if first < 0 {
			continue
		}
		better := needed < fewest || needed == fewest && idle[first].For > idle[best].For
		if best < 0 || better {
			best, fewest = first, needed
		}
	}
	return best
}

// leastEvictions returns which instance to evict first on one node, and how many of the given
// instances must go there; -1 if all of them are not enough.
func leastEvictions(n Node, idle []Idle, there []int, want Amount) (first, needed int) {
	slices.SortStableFunc(there, func(a, b int) int { return cmp.Compare(idle[b].For, idle[a].For) })
	for _, i := range there {
		if n.fits(&want, &idle[i].Requests) {
			return i, 1
		}
	}
	for _, i := range there {
		n, needed = *without(n, idle[i]), needed+1
		if n.Fits(want) {
			return there[0], needed
		}
	}
	return -1, 0
}
