package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ReasonCounts counts nodes by the reason why no instance can be placed on them. Reasons
// follow a number of nodes, such as "not ready". It has as many entries as there are different
// reasons, however many nodes exist.
type ReasonCounts map[string]int

const (
	// maxReasons is how many different reasons are listed, the most frequent first, and
	// maxReason the maximum bytes of each, so that an explanation stays below 1 KiB.
	maxReasons = 6
	maxReason  = 140
)

// Shortages counts nodes by what they lack for an instance that requests want, and says how
// much is free on the node with the most.
func Shortages(nodes []Node, want Amount) ReasonCounts {
	var short, free [lacks]int64
	fitting := int64(0)
	t := make(ReasonCounts)
	for i := range nodes {
		n := &nodes[i]
		left := n.Allocatable.Minus(n.Requested)
		switch {
		case want.MilliCPU > left.MilliCPU:
			short[cpu]++
			free[cpu] = max(free[cpu], left.MilliCPU)
		case want.Memory > left.Memory:
			short[memory]++
			free[memory] = max(free[memory], left.Memory)
		case !n.covers(want.Scalars, Scalars{}):
			name, wanted := left.Scalars.short(want.Scalars)
			t[fmt.Sprintf("short of %s (an instance requests %d)", name, wanted)]++
		case !n.Fits(want):
			short[pods]++
		default:
			fitting++
		}
	}
	t.add(short[cpu], fmt.Sprintf("short of CPU (an instance requests %dm, a node has at most %dm free)", want.MilliCPU, free[cpu]))
	t.add(short[memory], fmt.Sprintf("short of memory (an instance requests %d MiB, a node has at most %d MiB free)", mebibytes(want.Memory), free[memory]>>20))
	t.add(short[pods], "at their limit of pods")
	t.add(fitting, "with room since a moment ago")
	return t
}

const (
	cpu = iota
	memory
	pods
	lacks
)

// mebibytes rounds up, so that a request never seems to fit.
func mebibytes(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

func (t ReasonCounts) add(nodes int64, why string) {
	if nodes > 0 {
		t[why] += int(nodes)
	}
}

// Plus is the sum of both.
func (t ReasonCounts) Plus(other ReasonCounts) ReasonCounts {
	sum := make(ReasonCounts, len(t)+len(other))
	for _, counts := range [...]ReasonCounts{t, other} {
		for why, nodes := range counts {
			sum[why] += nodes
		}
	}
	return sum
}

// String says how many nodes exist and why none has room, in less than 1 KiB: "432 nodes: 412
// short of CPU (...), 17 cordoned, 3 not ready".
func (t ReasonCounts) String() string {
	if len(t) == 0 {
		return "there is no node"
	}
	reasons := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b))
	})
	all, said := 0, 0
	for _, nodes := range t {
		all += nodes
	}
	var parts []string
	for _, why := range reasons[:min(maxReasons, len(reasons))] {
		parts = append(parts, fmt.Sprintf("%d %s", t[why], shorten(why)))
		said += t[why]
	}
	if said < all {
		parts = append(parts, fmt.Sprintf("%d for other reasons", all-said))
	}
	nodes := "nodes"
	if all == 1 {
		nodes = "node"
	}
	return fmt.Sprintf("%d %s: %s", all, nodes, strings.Join(parts, ", "))
}

// shorten cuts a reason that contains other people's text, such as a long taint.
func shorten(why string) string {
	if len(why) <= maxReason {
		return why
	}
	return strings.ToValidUTF8(why[:maxReason], "") + "..."
}
