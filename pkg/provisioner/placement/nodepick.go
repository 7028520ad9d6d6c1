package placement

// Amount is an amount of each resource.
type Amount struct {
	// MilliCPU in thousandths of a core.
	MilliCPU int64
	// Memory in bytes.
	Memory int64
	// Pods is a number of pods. Whoever wants none is not bounded by it.
	Pods int64
	// Further are other resources, by the name that each has in Kubernetes.
	Further Further
}

// Plus is a and b together.
func (a Amount) Plus(b Amount) Amount {
	a.add(&b)
	return a
}

// Minus is a without b.
func (a Amount) Minus(b Amount) Amount {
	a.MilliCPU, a.Memory, a.Pods = a.MilliCPU-b.MilliCPU, a.Memory-b.Memory, a.Pods-b.Pods
	if b.Further.some() {
		a.Further = a.Further.minus(b.Further)
	}
	return a
}

// add adds b in place: an amount that is copied is too large for registers.
func (a *Amount) add(b *Amount) {
	a.MilliCPU += b.MilliCPU
	a.Memory += b.Memory
	a.Pods += b.Pods
	if b.Further.some() {
		a.Further = a.Further.plus(b.Further)
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
	Excluded Tally
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
		(!want.Further.some() || n.covers(want.Further, gone.Further))
}

// covers says whether the node has so much left of further resources once some have gone.
func (n *Node) covers(want, gone Further) bool {
	short, _ := n.further().plus(gone).short(want)
	return short == ""
}

// further is what the node has left of further resources.
func (n *Node) further() Further { return n.Allocatable.Further.minus(n.Requested.Further) }
