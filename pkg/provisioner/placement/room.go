package placement

// plenty bounds what is counted of one node: who requests nothing fits any number of
// times.
const plenty = 1 << 16

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
	fitting := int64(plenty)
	if want.MilliCPU > 0 {
		fitting = min(fitting, cpu/want.MilliCPU)
	}
	if want.Memory > 0 {
		fitting = min(fitting, memory/want.Memory)
	}
	if want.Pods > 0 {
		fitting = min(fitting, pods/want.Pods)
	}
	if want.Further.some() {
		fitting = n.further().times(want.Further, fitting)
	}
	return int(fitting)
}
