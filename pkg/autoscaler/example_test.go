package autoscaler_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// 200 calls of 50 ms come at once to a function without an instance, whose instances take a
// second to start. FPCSch orders one for each call. Horizon knows that a few work them all off
// while one more would start.
func Example() {
	params := autoscaler.Params{Tick: 100 * time.Millisecond, StaleAfter: 100 * time.Millisecond}
	for _, name := range []string{"FPCSch", "Horizon"} {
		decide, _ := autoscaler.ByName(name)
		s := autoscaler.Snapshot{Arrived: 200, Room: -1, MeanExecution: 50 * time.Millisecond, MeanStart: time.Second}
		for range 9 { // ticks, until the first instance is there
			d := decide(s, params)
			if d.Create > 0 {
				fmt.Printf("%s +%d: %s\n", name, d.Create, autoscaler.Explain(s, d, params))
			}
			s.Creating += d.Create - d.Cancel
			s.State, s.Elapsed = d.State, params.Tick
		}
	}
	// Output:
	// FPCSch +1: first call; 0 instances, 200 waiting
	// FPCSch +199: more calls came before the first instance was ready; 0 instances, 1 starting (a start takes 1 s), 200 waiting
	// Horizon +4: the queue would take the instances too long; 0 instances, 200 waiting; calls of 50 ms need 4 instances within 1 s
}

// A function keeps to its limits, whatever its decider wants.
func ExampleBound() {
	snapshot := autoscaler.Snapshot{Arrived: 40, Created: 3, Room: -1}
	d := autoscaler.Bound(autoscaler.Decision{Create: 10, Why: autoscaler.ReasonBacklog}, snapshot, autoscaler.Limits{Max: 5})
	fmt.Printf("+%d (%s)\n", d.Create, d.Why)
	// Output:
	// +2 (AtMax)
}
