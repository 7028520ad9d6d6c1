package placement_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// One of two nodes has room for an instance of half a core, and then none has.
func ExampleSite() {
	core := placement.Amount{MilliCPU: 1000, Memory: 1 << 30, Pods: 10}
	half := placement.Amount{MilliCPU: 500, Memory: 128 << 20, Pods: 1}
	site := placement.NewSite(placement.Candidates{
		Nodes: []placement.Node{
			{Name: "node-1", Allocatable: core, Requested: placement.Amount{MilliCPU: 900}},
			{Name: "node-2", Allocatable: core, Requested: placement.Amount{MilliCPU: 400}},
		},
		Excluded: placement.ReasonCounts{"not ready": 1},
	})
	random := rand.New(rand.NewPCG(1, 1))
	for range 2 {
		node, ok := site.Pick(half, random.IntN)
		fmt.Printf("%q %v\n", node, ok)
		site.Request(node, half)
	}
	site.Refresh()
	fmt.Println(site.Explain(half))
	// Output:
	// "node-2" true
	// "" false
	// 3 nodes: 2 short of CPU (an instance requests 500m, a node has at most 100m free), 1 not ready
}

// Of the idle instances that make room alone, the one that was idle for longest goes.
func ExampleEvictionPlanner() {
	half := placement.Amount{MilliCPU: 500}
	nodes := []placement.Node{{Name: "node-1", Allocatable: placement.Amount{MilliCPU: 1000}, Requested: placement.Amount{MilliCPU: 1000}}}
	idle := []placement.Idle{
		{Node: "node-1", Requests: placement.Amount{MilliCPU: 100}, For: time.Hour},
		{Node: "node-1", Requests: half, For: time.Minute},
		{Node: "node-1", Requests: half, For: 10 * time.Minute},
	}
	node, out, _ := placement.NewEvictionPlanner(nodes, idle).Find(placement.EvictionRequest{Want: half, IdleFor: time.Second})
	fmt.Println(node, "idle for", idle[out[0]].For)
	// Output:
	// node-1 idle for 10m0s
}
