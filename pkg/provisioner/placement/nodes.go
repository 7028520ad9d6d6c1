package placement

// Amount is an amount of each resource.
type Amount struct {
	// MilliCPU in thousandths of a core.
	MilliCPU int64
	// Memory in bytes.
	Memory int64
	// Pods is a number of pods. Whoever wants none is not bounded by it.
	Pods int64
	// Scalars are other resources, by the name that each has in Kubernetes.
	Scalars Scalars
}

// Plus is a and b together.
func (a Amount) Plus(b Amount) Amount {
	a.add(&b)
	return a
}

// Minus is a without b.
func (a Amount) Minus(b Amount) Amount {
	a.MilliCPU, a.Memory, a.Pods = a.MilliCPU-b.MilliCPU, a.Memory-b.Memory, a.Pods-b.Pods
	if b.Scalars.some() {
		a.Scalars = a.Scalars.minus(b.Scalars)
	}
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

// Node is what is known of a node.
type Node struct {
	Name string
	// Allocatable is what instances may request in all, and Requested what
	// they have requested.
	Allocatable Amount
	Requested   Amount
}

// Candidates are the nodes on which instances of some function may run.
type Candidates struct {
	// Nodes are to be used first, and Avoided only where none of them has room.
	Nodes, Avoided []Node
	// Excluded are all others, counted by why.
	Excluded ReasonCounts
}

// Fits says whether a node has room for want.
func (n *Node) Fits(want Amount) bool { return n.fits(&want, &Amount{}) }

// fits says whether a node has room for want once something has gone. It is asked for each
// idle instance, so nothing is copied for it.
func (n *Node) fits(want, gone *Amount) bool {
	has, taken := &n.Allocatable, &n.Requested
	return taken.MilliCPU-gone.MilliCPU+want.MilliCPU <= has.MilliCPU &&
		taken.Memory-gone.Memory+want.Memory <= has.Memory &&
		(want.Pods == 0 || taken.Pods-gone.Pods+want.Pods <= has.Pods) &&
		(!want.Scalars.some() || n.covers(want.Scalars, gone.Scalars))
}

// covers says whether the node has so much left of further resources once some have gone.
func (n *Node) covers(want, gone Scalars) bool {
	short, _ := n.freeScalars().plus(gone).short(want)
	return short == ""
}

// freeScalars is what the node has left of further resources.
func (n *Node) freeScalars() Scalars { return n.Allocatable.Scalars.minus(n.Requested.Scalars) }

// maxPerNode bounds what is counted of one node: who requests nothing fits any number of
// times.
const maxPerNode = 1 << 16

// Room is how many instances that request want each there is room for on all nodes
// together. Of one node, no more than 65536 are counted.
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
