package nodepick

import "fmt"

// Amount is an amount of each resource.
type Amount struct {
	// MilliCPU in thousandths of a core.
	MilliCPU int64
	// Memory in bytes.
	Memory int64
}

// Plus is a and b together.
func (a Amount) Plus(b Amount) Amount {
	return Amount{MilliCPU: a.MilliCPU + b.MilliCPU, Memory: a.Memory + b.Memory}
}

// Minus is a without b.
func (a Amount) Minus(b Amount) Amount {
	return Amount{MilliCPU: a.MilliCPU - b.MilliCPU, Memory: a.Memory - b.Memory}
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

// Pick returns the index of a node with room for want, each with the same
// probability, or -1 and the reason of each node. intn(n) must return a random
// number in [0, n).
func Pick(nodes []Node, want Amount, intn func(n int) int) (int, []Rejection) {
	var fitting []int
	var rejected []Rejection
	for i, n := range nodes {
		if reason := lacks(n, want); reason != "" {
			rejected = append(rejected, Rejection{Node: n.Name, Reason: reason})
			continue
		}
		fitting = append(fitting, i)
	}
	if len(fitting) == 0 {
		return -1, rejected
	}
	return fitting[intn(len(fitting))], rejected
}

// lacks says what a node lacks, or nothing if the instance fits.
func lacks(n Node, want Amount) string {
	free := n.Allocatable.Minus(n.Requested)
	switch {
	case want.MilliCPU > free.MilliCPU:
		return fmt.Sprintf("%dm CPU requested, %dm of %dm free", want.MilliCPU, max(0, free.MilliCPU), n.Allocatable.MilliCPU)
	case want.Memory > free.Memory:
		return fmt.Sprintf("%d MiB memory requested, %d of %d MiB free", want.Memory>>20, max(0, free.Memory)>>20, n.Allocatable.Memory>>20)
	}
	return ""
}
