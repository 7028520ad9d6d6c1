package floor_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
)

// A function that is called once an hour: its instance leaves after the call, and is started
// again shortly before the next one.
func Example() {
	var idle floor.Histogram
	for range 24 {
		idle.Add(time.Hour)
	}
	windows, ok := idle.Windows(time.Minute)
	fmt.Println("there is a pattern:", ok)
	fmt.Printf("next call likely %v after the last one, for %v\n", windows.Prewarm, windows.KeepAlive)

	called := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	for _, later := range []time.Duration{10 * time.Minute, 58 * time.Minute, 2 * time.Hour} {
		plan := windows.Plan(called, called.Add(later), 3*time.Second)
		fmt.Printf("after %v: keep %v, least %d\n", later, plan.Keep, plan.Floor)
	}
	// Output:
	// there is a pattern: true
	// next call likely 54m0s after the last one, for 13m6s
	// after 10m0s: keep false, least 0
	// after 58m0s: keep true, least 1
	// after 2h0m0s: keep false, least 0
}
