package coldstart_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// A start of three seconds, in which the image was pulled. What is not known of it, here when the
// pod had its network, takes no time.
func Example() {
	began := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	after := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	phases := coldstart.Moments{
		Wanted: began, Launched: after(60), Created: after(80),
		Began: after(2500), Ready: after(2950), Hello: after(2990), Served: after(3000),
	}.Phases()
	for phase, took := range phases {
		fmt.Printf("%-10s %v\n", coldstart.Phase(phase), took)
	}
	fmt.Printf("%-10s %v\n", "total", phases.Total())
	// Output:
	// decide     60ms
	// create     20ms
	// sandbox    0s
	// containers 2.42s
	// ready      450ms
	// hello      40ms
	// claim      10ms
	// total      3s
}
