package admission_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/queue/admission"
)

// Ten calls of a second each wait for two instances, and no third one can come. A client
// that waits for three seconds is refused at once, and knows when to try again; one that
// waits for ten is let in.
func Example() {
	var limiter admission.Limiter
	backlog := admission.BacklogEstimate{Parallel: 2, Mean: time.Second, AtCapacity: true}
	for _, patience := range []time.Duration{3 * time.Second, 10 * time.Second} {
		call := admission.Call{Now: time.Unix(0, 0), Waiting: 10, Remaining: patience}
		if refusal := limiter.Admit(call, admission.Limits{}, backlog); refusal != nil {
			fmt.Println(refusal.Reason, refusal.RetryAfter)
		} else {
			fmt.Println("let in")
		}
	}
	// Output:
	// WaitTooLong 4s
	// let in
}
