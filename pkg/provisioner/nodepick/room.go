package nodepick

// plenty bounds what is counted of one node: who requests nothing fits any number of
// times.
const plenty = 1 << 16

// Room is how many instances that request want each there is room for on all nodes
// together. Of one node, no more than 65536 are counted.
func Room(nodes []Node, want Amount) int {
	room := 0
	for i := range nodes {
		n := &nodes[i]
		if !n.Fits(want) {
			continue
		}
		has, taken := &n.Allocatable, &n.Requested
		fitting := int64(plenty)
		for _, of := range [...]struct{ free, want int64 }{
			{has.MilliCPU - taken.MilliCPU, want.MilliCPU}, {has.Memory - taken.Memory, want.Memory}, {has.Pods - taken.Pods, want.Pods},
		} {
			if of.want > 0 {
				fitting = min(fitting, of.free/of.want)
			}
		}
		if want.Further.some() {
			fitting = n.further().times(want.Further, fitting)
		}
		room += int(max(0, fitting))
	}
	return room
}
