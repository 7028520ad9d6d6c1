package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawFull(t *rapid.T) (nodes []Node, idle []Idle) {
	nodes = make([]Node, rapid.IntRange(1, 4).Draw(t, "nodes"))
	for i := range nodes {
		nodes[i] = Node{Name: string(rune('a' + i)), Allocatable: Amount{MilliCPU: 100, Memory: 100, Scalars: further("a.b/c", 3).Scalars}}
	}
	idle = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Idle {
		return Idle{
			Node:     nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "node")].Name,
			Requests: Amount{MilliCPU: rapid.Int64Range(1, 60).Draw(t, "cpu"), Memory: rapid.Int64Range(1, 60).Draw(t, "memory"), Scalars: drawDevices(t)},
			For:      time.Duration(rapid.IntRange(1, 9).Draw(t, "for")),
			Group:    rapid.SampledFrom([]string{"x", "y"}).Draw(t, "group"),
		}
	}), 0, 12).Draw(t, "idle")
	for i := range nodes {
		nodes[i].Requested = Amount{MilliCPU: rapid.Int64Range(30, 100).Draw(t, "busy"), Memory: 50, Scalars: drawDevices(t)}
		for _, in := range idle {
			if in.Node == nodes[i].Name {
				nodes[i].Requested = nodes[i].Requested.Plus(in.Requests)
			}
		}
	}
	return nodes, idle
}

// For the first that asks, a planner is as good as evict, which looks at everything: as few go, and
// the first of them has been idle as long.
func TestAnEvictionPlannerIsAsGoodAsALookAtEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, idle := drawFull(t)
		ask := EvictionRequest{
			Want:    Amount{MilliCPU: rapid.Int64Range(1, 100).Draw(t, "want"), Memory: 10, Scalars: drawDevices(t)},
			Group:   rapid.SampledFrom([]string{"", "x"}).Draw(t, "group"),
			IdleFor: time.Duration(rapid.IntRange(1, 9).Draw(t, "idle for")),
			Waited:  time.Duration(rapid.IntRange(0, 9).Draw(t, "waited")),
		}
		if pick(nodes, ask.Want, func(int) int { return 0 }) >= 0 {
			return
		}
		var may []Idle
		for _, in := range idle {
			if (ask.Group == "" || in.Group == ask.Group) && (in.For >= ask.IdleFor || in.For < ask.Waited) {
				may = append(may, in)
			}
		}
		node, out, ok := NewEvictionPlanner(append([]Node(nil), nodes...), idle).Find(ask)
		slow := evict(nodes, may, ask.Want)
		if ok != (slow >= 0) {
			t.Fatalf("found: %v, want %v", ok, slow >= 0)
		}
		if !ok {
			return
		}
		if idle[out[0]].For != may[slow].For {
			t.Fatalf("%v goes, want %v", idle[out[0]], may[slow])
		}
		for i := range nodes {
			if nodes[i].Name != node {
				continue
			}
			for n, at := range out {
				if nodes[i].Fits(ask.Want) {
					t.Fatalf("%d of %d are enough", n, len(out))
				}
				nodes[i] = *without(nodes[i], idle[at])
			}
			if !nodes[i].Fits(ask.Want) {
				t.Fatal("there is no room after all")
			}
		}
	})
}

// However many ask one after the other, nobody finds room that another one was given,
// nothing goes twice, and a planner that finds none would find none again, unless room was left
// over on the way.
func TestAnEvictionPlannerMakesNoRoomTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, idle := drawFull(t)
		c := NewEvictionPlanner(append([]Node(nil), nodes...), idle)
		gone := make(map[int]bool)
		at := func(name string) *Node { return &nodes[name[0]-'a'] }
		for range rapid.IntRange(1, 8).Draw(t, "asks") {
			ask := EvictionRequest{Want: Amount{MilliCPU: rapid.SampledFrom([]int64{20, 50}).Draw(t, "want"), Memory: 10}, IdleFor: 1}
			node, out, ok := c.Find(ask)
			if !ok {
				continue
			}
			for _, i := range out {
				if gone[i] || idle[i].Node != node {
					t.Fatalf("%d goes for room on %s: %+v", i, node, idle[i])
				}
				if rapid.IntRange(0, 3).Draw(t, "busy") == 0 {
					c.MarkGone(i, false)
					ok = false
				} else {
					c.MarkGone(i, true)
					*at(node) = *without(*at(node), idle[i])
				}
				gone[i] = true
			}
			if ok {
				if !at(node).Fits(ask.Want) {
					t.Fatalf("%s has no room for %+v", node, ask.Want)
				}
				c.Reserve(node, ask.Want)
				at(node).Requested = at(node).Requested.Plus(ask.Want)
			}
		}
	})
}

// drawDevices is mostly none.
func drawDevices(t *rapid.T) Scalars {
	return further("a.b/c", max(0, rapid.Int64Range(-5, 3).Draw(t, "devices"))).Scalars
}

// 1,000 functions ask while 5,000 instances are idle on 1,000 nodes: once so that each
// finds one, and once so that none of the instances may go.
func BenchmarkEvictionPlanner(b *testing.B) {
	nodes := make([]Node, 1000)
	idle := make([]Idle, 5000)
	for i := range nodes {
		nodes[i] = Node{Name: fmt.Sprint(i), Allocatable: Amount{MilliCPU: 500}, Requested: Amount{MilliCPU: 500}}
	}
	for i := range idle {
		idle[i] = Idle{Node: nodes[i%1000].Name, Requests: Amount{MilliCPU: 100}, For: time.Duration(rand.IntN(1000))}
	}
	for name, ask := range map[string]EvictionRequest{
		"found": {Want: Amount{MilliCPU: 100}, IdleFor: 1},
		"none":  {Want: Amount{MilliCPU: 600}, IdleFor: 1},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := NewEvictionPlanner(append([]Node(nil), nodes...), idle)
				for range 1000 {
					if node, out, ok := c.Find(ask); ok {
						c.MarkGone(out[0], true)
						c.Reserve(node, ask.Want)
					}
				}
			}
		})
	}
}
