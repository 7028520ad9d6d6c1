package capacity_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

// The only node is full. A function without any instance gets the room of an idle one of another
// function: it is reserved from the eviction on, and used when it has come free.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	core := placement.Amount{MilliCPU: 1000}
	planner := capacity.New(capacity.Config{Tick: 100 * time.Millisecond, EvictAfter: capacity.DefaultEvictAfter, Patience: capacity.DefaultPatience})
	observe := func(requested placement.Amount) {
		planner.BeginTick(now)
		planner.Observe("", placement.Candidates{Nodes: []placement.Node{{Name: "node-1", Allocatable: core, Requested: requested}}})
	}
	first := func(n int) int { return 0 }
	mail := capacity.Idle{
		Key: capacity.Key{FunctionUID: "mail", CID: "00000007-000001"}, Node: "node-1", Requests: core, Namespace: "office", Since: now.Add(-time.Minute),
	}
	shape := capacity.Shape{Requests: core}

	observe(core)
	_, ok := planner.Place("cart", shape, first)
	fmt.Println("there is room:", ok)
	planner.Update(map[string]capacity.Usage{"mail": {Namespace: "office", MilliCPU: 1000, Idle: []capacity.Idle{mail}}})
	planner.Gather(now)
	planner.MakeRoom(capacity.Want{UID: "cart", Namespace: "shop", Shape: shape, Missing: 1, Starved: true, Waiting: 1, OldestWait: time.Second}, now,
		func(e capacity.Evict) bool {
			fmt.Printf("evict %s of %s, idle for %v\n", e.CID, e.FunctionUID, e.For)
			return true
		})
	fmt.Println("reserved for cart:", planner.Reserved("cart"))

	now = now.Add(time.Second)
	planner.Left(mail.Key)
	observe(placement.Amount{})
	node, _ := planner.Place("cart", shape, first)
	fmt.Println("cart is placed on", node)
	// Output:
	// there is room: false
	// evict 00000007-000001 of mail, idle for 1m0s
	// reserved for cart: 1
	// cart is placed on node-1
}
