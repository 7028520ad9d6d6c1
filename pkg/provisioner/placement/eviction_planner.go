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

// EvictionPlanner finds the idle instances to evict so that others fit. It begins with the
// nodes as they will be when all ending instances have ended, and tracks its own decisions, so
// that it makes no room twice.
//
// However many requests ask for the same amount, it looks at each idle instance once for all
// of them. It is not safe for concurrent use.
type EvictionPlanner struct {
	nodes  *Index
	places map[string]int
	idle   []Idle
	gone   []bool
	// groups are the idle instances by group, and all of them under "", the longest
	// idle first.
	groups map[string][]int
	scans  map[scanKey]*scan
	// scansLeft is how many more times it may look at all nodes.
	scansLeft int
}

// EvictionRequest is a request for room that no node has.
type EvictionRequest struct {
	Want Amount
	// Group restricts the instances to evict; empty for all.
	Group string
	// IdleFor is how long an instance must have been idle. One that became idle after the
	// request began to wait may go earlier: Waited is the length of that wait; 0 allows none
	// to go earlier.
	IdleFor, Waited time.Duration
}

// scanKey is what requests that share a scan have in common.
type scanKey struct {
	want  Amount
	group string
}

// scan is the progress through the instances of a group for an amount.
type scan struct {
	// next is, for each position, the first one from there on that is worth a look; that may
	// itself point on.
	next []int
	// several says that a search for several instances on one node was made.
	several bool
}

// maxScans bounds how often an EvictionPlanner searches all nodes for several instances on one
// node. Later requests are repeated in the next tick.
const maxScans = 16

// NewEvictionPlanner makes an EvictionPlanner of nodes, which belong to it from then on.
func NewEvictionPlanner(nodes []Node, idle []Idle) *EvictionPlanner {
	c := &EvictionPlanner{
		nodes: NewIndex(nodes), places: make(map[string]int, len(nodes)), idle: idle, gone: make([]bool, len(idle)),
		groups: make(map[string][]int), scans: make(map[scanKey]*scan), scansLeft: maxScans,
	}
	for i := range nodes {
		c.places[nodes[i].Name] = i
	}
	order := make([]int, len(idle))
	for i := range order {
		order[i] = i
	}
	longer := func(a, b int) int { return cmp.Compare(idle[b].For, idle[a].For) }
	if !slices.IsSortedFunc(order, longer) { // mostly they come in order
		slices.SortStableFunc(order, longer)
	}
	c.groups[""] = order
	for _, i := range order {
		if group := idle[i].Group; group != "" {
			c.groups[group] = append(c.groups[group], i)
		}
	}
	return c
}

// Find returns the name of a node that will fit the request once the instances out have gone
// as well: none if earlier decisions make enough room, else the longest idle one that makes
// enough room alone, else as few as possible. ok is false if no permitted eviction helps.
func (c *EvictionPlanner) Find(ask EvictionRequest) (node string, out []int, ok bool) {
	if i := c.nodes.Pick(ask.Want, func(int) int { return 0 }); i >= 0 {
		return c.nodes.nodes[i].Name, nil, true
	}
	of := scanKey{ask.Want, ask.Group}
	w := c.scans[of]
	if w == nil {
		w = newScan(len(c.groups[ask.Group]))
		c.scans[of] = w
	}
	for _, allowed := range c.allowed(ask) {
		if i := c.findOne(ask, w, allowed); i >= 0 {
			return c.idle[i].Node, []int{i}, true
		}
	}
	if w.several || c.scansLeft == 0 {
		return "", nil, false
	}
	w.several = true
	c.scansLeft--
	return c.findSeveral(ask)
}

// span are positions from first to before end.
type span struct{ first, end int }

// allowed are the positions in the group whose instances may be evicted.
func (c *EvictionPlanner) allowed(ask EvictionRequest) [2]span {
	group := c.groups[ask.Group]
	shorterThan := func(d time.Duration) int {
		at, _ := slices.BinarySearchFunc(group, d, func(i int, d time.Duration) int {
			if c.idle[i].For < d {
				return 1
			}
			return -1
		})
		return at
	}
	long := shorterThan(ask.IdleFor)
	late := span{len(group), len(group)}
	if ask.Waited > 0 {
		late.first = max(long, shorterThan(ask.Waited))
	}
	return [2]span{{0, long}, late}
}

// findOne is the longest idle instance that makes enough room alone; -1 if none does.
func (c *EvictionPlanner) findOne(ask EvictionRequest, w *scan, allowed span) int {
	group := c.groups[ask.Group]
	for at := w.nextFrom(allowed.first); at < allowed.end; at = w.nextFrom(at + 1) {
		i := group[at]
		place, known := c.places[c.idle[i].Node]
		if known && !c.gone[i] && c.nodes.nodes[place].fits(&ask.Want, &c.idle[i].Requests) {
			return i
		}
		w.skip(at)
	}
	return -1
}

// findSeveral returns the fewest instances of one node that make enough room together, and
// that node.
func (c *EvictionPlanner) findSeveral(ask EvictionRequest) (node string, out []int, ok bool) {
	group := c.groups[ask.Group]
	there := make(map[int][]int)
	for _, allowed := range c.allowed(ask) {
		for _, i := range group[allowed.first:allowed.end] {
			if place, known := c.places[c.idle[i].Node]; known && !c.gone[i] {
				there[place] = append(there[place], i)
			}
		}
	}
	best := -1
	for place, candidates := range there {
		n := c.nodes.nodes[place]
		for needed, i := range candidates {
			n = *without(n, c.idle[i])
			if !n.Fits(ask.Want) {
				continue
			}
			chosen := candidates[:needed+1]
			if best < 0 || c.better(chosen, out) || !c.better(out, chosen) && place < best {
				best, out = place, chosen
			}
			break
		}
	}
	if best < 0 {
		return "", nil, false
	}
	return c.nodes.nodes[best].Name, out, true
}

// better reports whether a has fewer instances than b, or as many and longer idle ones.
func (c *EvictionPlanner) better(a, b []int) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(c.idle[b[0]].For, c.idle[a[0]].For)) < 0
}

// MarkGone excludes an idle instance from now on: it is being ended, which frees its requests,
// or it is no longer idle.
func (c *EvictionPlanner) MarkGone(i int, frees bool) {
	if c.gone[i] {
		return
	}
	c.gone[i] = true
	if place, known := c.places[c.idle[i].Node]; known && frees {
		c.nodes.Request(place, Amount{}.Minus(c.idle[i].Requests))
	}
}

// Reserve keeps room on a node for the request that was granted it.
func (c *EvictionPlanner) Reserve(node string, want Amount) {
	if place, known := c.places[node]; known {
		c.nodes.Request(place, want)
	}
}

func newScan(positions int) *scan {
	w := &scan{next: make([]int, positions)}
	for at := range w.next {
		w.next[at] = at
	}
	return w
}

// nextFrom is the first position from at on that was not skipped.
func (w *scan) nextFrom(at int) int {
	end := at
	for end < len(w.next) && w.next[end] != end {
		end = w.next[end]
	}
	for at < len(w.next) && w.next[at] != at { // so that the way is shorter next time
		at, w.next[at] = w.next[at], end
	}
	return end
}

// skip excludes a position from now on.
func (w *scan) skip(at int) { w.next[at] = at + 1 }

func without(n Node, in Idle) *Node {
	n.Requested = n.Requested.Minus(in.Requests)
	return &n
}
