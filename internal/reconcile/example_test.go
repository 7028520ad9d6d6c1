package reconcile_test

import (
	"fmt"

	"github.com/windlass-dev/windlass/internal/reconcile"
)

// A copy that misses what the original has may have an event under way. If it misses it at
// the next look too, the event is lost.
func Example() {
	var level reconcile.Level[string]
	believed, observed := reconcile.SetOf("pod-1"), reconcile.SetOf("pod-1", "pod-2")
	for range 2 {
		standing := level.Look(reconcile.Compare(believed, observed))
		fmt.Println("lost for good:", len(standing.Unknown))
	}
	// Output:
	// lost for good: 0
	// lost for good: 1
}
