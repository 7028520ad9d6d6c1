package placement

// Index tracks, for a few amounts, which of many nodes have room for them, so that a pick
// costs the same however many nodes exist. It picks each node with room with the same
// probability.
//
// A change of a node costs a little for each different amount that was ever requested.
type Index struct {
	nodes  []Node
	shapes []*shape
	of     map[Amount]*shape
	// last is the shape of the last request, which mostly is that of the next one.
	last *shape
}

// shape is the state of the index for one amount.
type shape struct {
	want Amount
	// times is how often want fits on each node, and total the sum.
	times []int
	total int
	// fitting are the nodes with room, in no order; at is the position of each node in it, -1
	// if it has none.
	fitting []int
	at      []int
}

// NewIndex makes an index of nodes, which belong to it from then on.
func NewIndex(nodes []Node) *Index {
	return &Index{nodes: nodes, of: make(map[Amount]*shape)}
}

// Add adds a node.
func (x *Index) Add(n Node) {
	x.nodes = append(x.nodes, n)
	last := len(x.nodes) - 1
	for _, s := range x.shapes {
		s.times, s.at = append(s.times, 0), append(s.at, -1)
		s.set(last, x.nodes[last].times(&s.want))
	}
}

// Len is how many nodes there are.
func (x *Index) Len() int { return len(x.nodes) }

// Node is the present state of the i-th node.
func (x *Index) Node(i int) Node { return x.nodes[i] }

// Pick returns the index of a node with room for want, or -1. intn(n) must return a
// random number in [0, n); it is called once if there is room.
func (x *Index) Pick(want Amount, intn func(n int) int) int {
	s := x.shape(want)
	if len(s.fitting) == 0 {
		return -1
	}
	return s.fitting[intn(len(s.fitting))]
}

// Room is how often want fits on all nodes together; empty amounts fit very often.
func (x *Index) Room(want Amount) int { return x.shape(want).total }

// countRoom is Room without adding a new amount to the index.
func (x *Index) countRoom(want Amount) int {
	if s, known := x.of[want]; known {
		return s.total
	}
	return Room(x.nodes, want)
}

// Request adds an amount, which may be negative, to what is requested of a node.
func (x *Index) Request(node int, amount Amount) {
	n := &x.nodes[node]
	n.Requested.add(&amount)
	for _, s := range x.shapes {
		s.set(node, n.times(&s.want))
	}
}

func (x *Index) shape(want Amount) *shape {
	if x.last != nil && x.last.want == want {
		return x.last
	}
	if s, known := x.of[want]; known {
		x.last = s
		return s
	}
	s := &shape{want: want, times: make([]int, len(x.nodes)), at: make([]int, len(x.nodes))}
	for i := range x.nodes {
		s.at[i] = -1
		s.set(i, x.nodes[i].times(&want))
	}
	x.of[want] = s
	x.shapes = append(x.shapes, s)
	return s
}

// set records how often the shape fits on a node.
func (s *shape) set(node, times int) {
	s.total += times - s.times[node]
	s.times[node] = times
	at := s.at[node]
	switch {
	case times > 0 && at < 0:
		s.at[node] = len(s.fitting)
		s.fitting = append(s.fitting, node)
	case times == 0 && at >= 0:
		last := len(s.fitting) - 1
		moved := s.fitting[last]
		s.fitting[at], s.at[moved] = moved, at
		s.fitting, s.at[node] = s.fitting[:last], -1
	}
}
