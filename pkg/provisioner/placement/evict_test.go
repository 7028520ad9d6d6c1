package placement

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEvict(t *testing.T) {
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
			if got := Evict(tt.nodes, tt.idle, Amount{MilliCPU: tt.want, Memory: tt.want}); got != tt.evict {
				t.Errorf("evicts %d, want %d", got, tt.evict)
			}
		})
	}
}

// To evict what Evict says, over and over, makes room if anything could, and
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
			i := Evict(nodes, idle, want)
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
