package workload_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/internal/workload"
)

// Half a minute of calls out of published numbers, the same for everybody who uses this seed,
// and thinned out for a small machine.
func Example() {
	trace, err := workload.Synthetic(workload.SyntheticOptions{Seed: 1, Length: 30 * time.Second, Rate: 20, FunctionsPerRange: 2})
	if err != nil {
		panic(err)
	}
	trace, err = workload.Shape{KeepOneIn: 4, MaxDuration: time.Second}.Apply(trace)
	if err != nil {
		panic(err)
	}
	for _, line := range trace.Describe() {
		fmt.Println(line)
	}
	// Output:
	// trace sfs-table-1: 159 calls of 10 functions in 30s
	// offered load: 1.35 CPU-seconds per second, at most 5 calls at a time
	// durations: p50 91.5ms, p90 1s, p99 1s, longest 1s
	// arrivals: Poisson, 20 calls per second, seed 1
	// durations: Table I of the SFS paper, uniform within each range, the open last range up to 2.35s
	// kept the first call of each function and then one in 4: 159 of 624 calls
	// durations capped at 1s: 25 of 159
}
