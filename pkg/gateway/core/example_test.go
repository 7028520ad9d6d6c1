package core_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// An instance claims a call and is lost. Nobody can say whether the function ran, so a second
// instance gets the call only if its function may run twice.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	for _, idempotent := range []bool{false, true} {
		call := core.New(core.Spec{Admitted: now, MaxQueueTime: time.Minute, Timeout: time.Second, MayRepeat: idempotent})
		ticket := invocation.Token{1}
		call.Queue(ticket, now)
		grant, err := call.Claim(now, ticket, "00000001-000001")
		if err != nil {
			panic(err)
		}
		if _, err := call.Claim(now, ticket, "00000001-000002"); err != nil {
			fmt.Println("another instance:", err)
		}
		d, err := call.Lose(grant.Attempt, now, invocation.Token{2}, core.InstanceLost)
		if err != nil {
			panic(err)
		}
		fmt.Printf("idempotent: %v, offered again: %v, fails: %v, executed: %q\n", idempotent, d.Offer, d.Fail, d.Failure.Executed)
	}
	// Output:
	// another instance: gateway: the invocation is not waiting
	// idempotent: false, offered again: false, fails: true, executed: "maybe"
	// another instance: gateway: the invocation is not waiting
	// idempotent: true, offered again: true, fails: false, executed: ""
}
