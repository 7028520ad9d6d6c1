package colocate_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// A core is reserved when latency-critical work waits, and returns once nothing has waited for a
// second.
func Example() {
	core, err := colocate.New(colocate.DefaultParams(4))
	if err != nil {
		panic(err)
	}
	show := func(ms time.Duration, e colocate.Event) {
		for _, effect := range core.Step(ms*time.Millisecond, e) {
			fmt.Printf("%d ms: %T%+v\n", ms, effect, effect)
		}
	}
	const ms = time.Millisecond
	show(0, colocate.Looked{})
	show(0, colocate.Arrived{Job: 1, Threads: 4})
	show(100, colocate.Looked{Usage: 50 * ms, Waited: 1 * ms})
	show(200, colocate.Looked{Usage: 100 * ms, Waited: 11 * ms})
	show(300, colocate.Looked{Usage: 150 * ms, Waited: 11 * ms})
	show(1300, colocate.Looked{Usage: 650 * ms, Waited: 11 * ms})
	// Output:
	// 0 ms: colocate.Place{Job:1 On:0-3}
	// 200 ms: colocate.Place{Job:1 On:1-3}
	// 1300 ms: colocate.Place{Job:1 On:0-3}
}
