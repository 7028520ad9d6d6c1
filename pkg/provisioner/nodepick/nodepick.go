package nodepick

import "fmt"

// Amount is an amount of each resource.
type Amount struct {
	// MilliCPU in thousandths of a core.
	MilliCPU int64
	// Memory in bytes.
	Memory int64
	// Pods is a number of pods. Whoever wants none is not bounded by it.
	Pods int64
}

// Plus is a and b together.
func (a Amount) Plus(b Amount) Amount {
	return Amount{MilliCPU: a.MilliCPU + b.MilliCPU, Memory: a.Memory + b.Memory, Pods: a.Pods + b.Pods}
}

// Minus is a without b.
func (a Amount) Minus(b Amount) Amount {
	return Amount{MilliCPU: a.MilliCPU - b.MilliCPU, Memory: a.Memory - b.Memory, Pods: a.Pods - b.Pods}
}

// Node is what is known of a node.
type Node struct {
	Name string
	// Allocatable is what instances may request in all, and Requested what
	// they have requested.
	Allocatable Amount
	Requested   Amount
}

// Rejection says why a node was not picked.
type Rejection struct {
	Node   string
	Reason string
}

// Fits says whether a node has room for want.
func (n *Node) Fits(want Amount) bool {
	return n.Requested.MilliCPU+want.MilliCPU <= n.Allocatable.MilliCPU &&
		n.Requested.Memory+want.Memory <= n.Allocatable.Memory &&
		(want.Pods == 0 || n.Requested.Pods+want.Pods <= n.Allocatable.Pods)
}

// Pick returns the index of a node with room for want, each with the same
// probability, or -1 and the reason of each node. intn(n) must return a random
// number in [0, n); it is called once.
func Pick(nodes []Node, want Amount, intn func(n int) int) (int, []Rejection) {
	fitting := 0
	for i := range nodes {
		if nodes[i].Fits(want) {
			fitting++
		}
	}
	if fitting == 0 {
		return -1, reject(nodes, want)
	}
	skip := intn(fitting)
	for i := range nodes {
		if !nodes[i].Fits(want) {
			continue
		}
		if skip == 0 {
			return i, nil
		}
		skip--
	}
	panic("nodepick: intn returned a number that is too large")
}

func reject(nodes []Node, want Amount) []Rejection {
	rejected := make([]Rejection, len(nodes))
	for i := range nodes {
		rejected[i] = Rejection{Node: nodes[i].Name, Reason: lacks(&nodes[i], want)}
	}
	return rejected
}

// lacks says what a node lacks on which want does not fit.
func lacks(n *Node, want Amount) string {
	free := n.Allocatable.Minus(n.Requested)
	switch {
	case want.MilliCPU > free.MilliCPU:
		return fmt.Sprintf("%dm CPU requested, %dm of %dm free", want.MilliCPU, max(0, free.MilliCPU), n.Allocatable.MilliCPU)
	case want.Memory > free.Memory:
		return fmt.Sprintf("%d MiB memory requested, %d of %d MiB free", want.Memory>>20, max(0, free.Memory)>>20, n.Allocatable.Memory>>20)
	}
	return fmt.Sprintf("it has no room for more than its %d pods", n.Allocatable.Pods)
}
