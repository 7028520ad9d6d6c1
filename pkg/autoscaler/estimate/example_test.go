package estimate_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
)

// What is old counts no more: a function that has become slower is soon known to be.
func ExampleLastN() {
	mean := estimate.NewLastN(3)
	for _, took := range []time.Duration{10, 10, 10, 40, 40, 40} {
		mean.Observe(took * time.Millisecond)
		fmt.Println(mean.Mean())
	}
	// Output:
	// 10ms
	// 10ms
	// 10ms
	// 20ms
	// 30ms
	// 40ms
}

// A revision that has never run is taken to be like the one before.
func ExampleRestore() {
	before := []estimate.Unit{{UID: "uid-1", Function: "shop/cart", Revision: "00001", Execution: 50 * time.Millisecond, Start: 3 * time.Second}}
	fmt.Printf("%+v\n", estimate.Restore(before, "uid-2"))
	// Output:
	// {Execution:50ms Start:3s}
}
