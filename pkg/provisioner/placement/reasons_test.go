package placement

import (
	"fmt"
	"strings"
	"testing"
)

func TestReasonCountsSayHowManyNodesLackWhat(t *testing.T) {
	node := func(cpu, memory, pods int64) Node {
		return Node{Allocatable: Amount{MilliCPU: 4000, Memory: 8 << 30, Pods: 110}, Requested: Amount{MilliCPU: 4000 - cpu, Memory: 8<<30 - memory<<20, Pods: 110 - pods}}
	}
	want := Amount{MilliCPU: 100, Memory: 64 << 20, Pods: 1}
	for name, tt := range map[string]struct {
		nodes    []Node
		excluded ReasonCounts
		says     string
	}{
		"no node":          {nil, nil, "there is no node"},
		"one node":         {[]Node{node(50, 100, 9)}, nil, "1 node: 1 short of CPU (an instance requests 100m, a node has at most 50m free)"},
		"the most is said": {[]Node{node(50, 100, 9), node(90, 0, 9), node(-10, 0, 9)}, nil, "3 nodes: 3 short of CPU (an instance requests 100m, a node has at most 90m free)"},
		"each once": {[]Node{node(0, 0, 0), node(100, 63, 0), node(100, 64, 0)}, nil,
			"3 nodes: 1 at their limit of pods, 1 short of CPU (an instance requests 100m, a node has at most 0m free), 1 short of memory (an instance requests 64 MiB, a node has at most 63 MiB free)"},
		"with those that are excluded": {[]Node{node(0, 0, 0)}, ReasonCounts{"cordoned": 17, "not ready": 3},
			"21 nodes: 17 cordoned, 3 not ready, 1 short of CPU (an instance requests 100m, a node has at most 0m free)"},
		"only the most frequent": {nil, ReasonCounts{"a": 9, "b": 8, "c": 7, "d": 6, "e": 5, "f": 4, "g": 2, "h": 1},
			"42 nodes: 9 a, 8 b, 7 c, 6 d, 5 e, 4 f, 3 for other reasons"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shortages(tt.nodes, want).Plus(tt.excluded).String(); got != tt.says {
				t.Errorf("it says %q, want %q", got, tt.says)
			}
		})
	}
}

func TestReasonCountsNameFurtherResources(t *testing.T) {
	nodes := []Node{
		{Allocatable: further("ephemeral-storage", 9), Requested: further("ephemeral-storage", 5)},
		{Allocatable: further("ephemeral-storage", 9).Plus(further("a.b/c", 4)), Requested: further("a.b/c", 3)},
		{Allocatable: further("ephemeral-storage", 9).Plus(further("a.b/c", 8))},
	}
	nodes = append(nodes, nodes[0])
	const want = "4 nodes: 2 short of a.b/c (an instance requests 2), 1 short of ephemeral-storage (an instance requests 6), 1 with room since a moment ago"
	nodes[0].Allocatable = nodes[0].Allocatable.Plus(further("a.b/c", 2))
	if got := Shortages(nodes, further("a.b/c", 2).Plus(further("ephemeral-storage", 6))).String(); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// What is said about nodes has the same size with 10 nodes and with 1,000, and with
// a taint of its own on each.
func TestH4WhatIsSaidAboutNodesIsBounded(t *testing.T) {
	excluded := make(ReasonCounts)
	for i := range 1000 {
		excluded[fmt.Sprintf("with the taint %s-%d that the function does not tolerate", strings.Repeat("x", 300), i)]++
	}
	if got := excluded.String(); len(got) > 1<<10 || !strings.HasPrefix(got, "1000 nodes: ") || !strings.HasSuffix(got, ", 994 for other reasons") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
