package nodepick

// plenty bounds what is counted of one node: who requests nothing fits any number of
// times.
const plenty = 1 << 16

// Room is how many instances that request want each there is room for on all nodes
// together. Of one node, no more than 65536 are counted.
func Room(nodes []Node, want Amount) int {
	room := 0
	for i := range nodes {
		free := nodes[i].Allocatable.Minus(nodes[i].Requested)
		fitting := int64(plenty)
		for _, of := range [...]struct{ free, want int64 }{
			{free.MilliCPU, want.MilliCPU}, {free.Memory, want.Memory}, {free.Pods, want.Pods},
		} {
			if of.want > 0 {
				fitting = min(fitting, of.free/of.want)
			}
		}
		if !nodes[i].Fits(want) {
			fitting = 0
		}
		room += int(max(0, fitting))
	}
	return room
}
