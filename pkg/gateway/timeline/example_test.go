package timeline_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
)

// A call that waited 300 ms for an instance and ran for 50 ms.
func Example() {
	began := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	after := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

	call := timeline.Begin(began)
	call.Offered(after(2))
	call.Claimed(after(302))
	call.Headed(after(357), 4*time.Millisecond, 50*time.Millisecond, 0)
	call.Executed(after(357), 50*time.Millisecond)
	call.End(after(358))
	for phase, span := range call.All() {
		fmt.Printf("%-8s %v\n", phase, span.Duration())
	}
	fmt.Printf("%-8s %v\n", "total", call.Total())
	// Output:
	// admit    2ms
	// queue    300ms
	// claim    4ms
	// execute  50ms
	// return   2ms
	// total    358ms
}
