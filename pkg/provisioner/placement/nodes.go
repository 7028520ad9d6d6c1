package placement

// Amount is an amount of each resource.
type Amount struct {
	// MilliCPU in thousandths of a core.
	MilliCPU int64
	// Memory in bytes.
	Memory int64
	// Pods is a number of pods. An amount of 0 is not bounded by it.
	Pods int64
	// Scalars are other resources, by the name that each has in Kubernetes.
	Scalars Scalars
}

// Plus is the sum of a and b.
func (a Amount) Plus(b Amount) Amount {
	a.add(&b)
	return a
}

// Minus is the difference of a and b.
func (a Amount) Minus(b Amount) Amount {
	a.MilliCPU, a.Memory, a.Pods = a.MilliCPU-b.MilliCPU, a.Memory-b.Memory, a.Pods-b.Pods
	if b.Scalars.some() {
		a.Scalars = a.Scalars.minus(b.Scalars)
	}
	return a
}

// Beyond is how much a exceeds b, for each resource.
func (a Amount) Beyond(b Amount) Amount {
	a = a.Minus(b)
	a.MilliCPU, a.Memory, a.Pods = max(0, a.MilliCPU), max(0, a.Memory), max(0, a.Pods)
	a.Scalars = a.Scalars.positive()
	return a
}

// add adds b in place: an amount that is copied is too large for registers.
func (a *Amount) add(b *Amount) {
	a.MilliCPU += b.MilliCPU
	a.Memory += b.Memory
	a.Pods += b.Pods
	if b.Scalars.some() {
		a.Scalars = a.Scalars.plus(b.Scalars)
	}
}

// Node is the state of a node.
type Node struct {
	Name string
	// Allocatable is the total that instances may request, and Requested the present requests.
	Allocatable Amount
	Requested   Amount
	// Fixed is the part of Requested that no eviction frees, such as that of DaemonSets.
	Fixed Amount
	// Busy says that more threads want to run on it than it has cores.
	Busy bool
}

// Candidates are the nodes on which instances of a function may run.
type Candidates struct {
	// Nodes are used first, and Avoided only if none of them has room.
	Nodes, Avoided []Node
	// Excluded counts all other nodes by reason.
	Excluded ReasonCounts
}

// Mark marks busy nodes, which are then used only if no calm one has room.
func (c *Candidates) Mark(busy func(node string) bool) {
	calm := c.Nodes[:0]
	for _, n := range c.Nodes {
		if n.Busy = busy(n.Name); n.Busy {
			c.Avoided = append(c.Avoided, n)
		} else {
			calm = append(calm, n)
		}
	}
	c.Nodes = calm
	for i := range c.Avoided {
		c.Avoided[i].Busy = busy(c.Avoided[i].Name)
	}
}

// Fits reports whether a node has room for want.
func (n *Node) Fits(want Amount) bool { return n.fits(&want, &Amount{}) }

// CouldFit reports whether a node would have room for want if it had only its Fixed requests.
func (n *Node) CouldFit(want Amount) bool {
	emptied := Node{Allocatable: n.Allocatable, Requested: n.Fixed}
	return emptied.Fits(want)
}

// fits reports whether a node has room for want once gone has ended. It runs for each idle
// instance, so it copies nothing.
func (n *Node) fits(want, gone *Amount) bool {
	has, taken := &n.Allocatable, &n.Requested
	return taken.MilliCPU-gone.MilliCPU+want.MilliCPU <= has.MilliCPU &&
		taken.Memory-gone.Memory+want.Memory <= has.Memory &&
		(want.Pods == 0 || taken.Pods-gone.Pods+want.Pods <= has.Pods) &&
		(!want.Scalars.some() || n.covers(want.Scalars, gone.Scalars))
}

// covers reports whether the node has enough further resources once gone has ended.
func (n *Node) covers(want, gone Scalars) bool {
	short, _ := n.freeScalars().plus(gone).short(want)
	return short == ""
}

// freeScalars is the node's remaining amount of further resources.
func (n *Node) freeScalars() Scalars { return n.Allocatable.Scalars.minus(n.Requested.Scalars) }

// maxPerNode bounds the count for one node: empty requests fit any number of times.
const maxPerNode = 1 << 16

// Room is how many instances that request want each fit on all nodes together. At most 65536
// are counted for each node.
func Room(nodes []Node, want Amount) int {
	room := 0
	for i := range nodes {
		room += nodes[i].times(&want)
	}
	return room
}

// times is how often want fits on a node.
func (n *Node) times(want *Amount) int {
	has, taken := &n.Allocatable, &n.Requested
	cpu, memory, pods := has.MilliCPU-taken.MilliCPU, has.Memory-taken.Memory, has.Pods-taken.Pods
	if want.MilliCPU > cpu || want.Memory > memory || want.Pods != 0 && want.Pods > pods {
		return 0
	}
	fitting := int64(maxPerNode)
	if want.MilliCPU > 0 {
		fitting = min(fitting, cpu/want.MilliCPU)
	}
	if want.Memory > 0 {
		fitting = min(fitting, memory/want.Memory)
	}
	if want.Pods > 0 {
		fitting = min(fitting, pods/want.Pods)
	}
	if want.Scalars.some() {
		fitting = n.freeScalars().times(want.Scalars, fitting)
	}
	return int(fitting)
}
