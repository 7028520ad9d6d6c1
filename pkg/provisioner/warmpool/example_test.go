package warmpool_test

import (
	"fmt"

	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// A pool of three is filled when one was taken, but not while functions find no room.
func ExampleDecide() {
	pool := warmpool.Snapshot{Target: 3, Ready: 2, LaunchBudget: 10}
	d := warmpool.Decide(pool)
	fmt.Printf("create %d (%s)\n", d.Create, d.Why)
	pool.NodesFull = true
	d = warmpool.Decide(pool)
	fmt.Printf("create %d (%s)\n", d.Create, d.Why)
	// Output:
	// create 1 (Refill)
	// create 0 (Crowded)
}

// A pool of six is kept by the schedulers in proportion to their functions, and by none that
// has no function for it.
func ExampleShare() {
	owned := map[string]int{"scheduler-0": 20, "scheduler-1": 10, "scheduler-2": 0}
	for _, id := range []string{"scheduler-0", "scheduler-1", "scheduler-2"} {
		fmt.Println(id, warmpool.Share(6, owned, id))
	}
	// Output:
	// scheduler-0 4
	// scheduler-1 2
	// scheduler-2 0
}
