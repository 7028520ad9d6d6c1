package placement

import (
	"cmp"
	"slices"
	"time"
)

// Idle is an instance that runs nothing and could be evicted.
type Idle struct {
	Node     string
	Requests Amount
	// For is how long it has been idle.
	For time.Duration
	// Group names its owner, for an EvictionPlanner.
	Group string
}

// Evict returns the index of the instance to evict so that want fits on a node where it did
// not: the longest idle one that makes enough room alone. If several must go, it returns the
// first of them, the longest idle one on the node where the fewest must. It returns -1 if no
// eviction helps.
func Evict(nodes []Node, idle []Idle, want Amount) int {
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

func without(n Node, in Idle) *Node {
	n.Requested = n.Requested.Minus(in.Requests)
	return &n
}
