package core_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// The first call of a function: a tick decides that it needs an instance, and the instance
// gets the call when it polls.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	horizon, _ := autoscaler.ByName("Horizon")
	cart := core.New(
		&core.Config{Tick: core.DefaultTick, MaxQueued: core.DefaultMaxQueued, ClaimGrace: core.DefaultClaimGrace, Executions: core.DefaultExecutions},
		core.Spec{Concurrency: 1, Timeout: time.Minute, StartupTimeout: time.Minute, Decide: horizon})
	for _, event := range []core.Event{
		core.OwnershipChanged{Term: invocation.Term{Epoch: 7}},
		&core.Offered{Ticket: invocation.Ticket{ID: invocation.ID{1}, Gateway: "gateway-0:9443", Arrived: now, Deadline: now.Add(time.Minute)}},
		&core.Ticked{Observed: core.Observed{Room: -1}},
		core.Joined{CID: "00000007-000001", Capacity: 1},
		&core.Pulled{CID: "00000007-000001", Wants: true, Credits: 1},
	} {
		fmt.Printf("%T\n", event)
		for _, effect := range cart.Step(now, event) {
			switch e := effect.(type) {
			case *core.Decided:
				fmt.Printf("    order %d (%s)\n", e.Wanted(), e.Decision.Why)
			case *core.HandOut:
				fmt.Printf("    call %d goes to %s\n", e.Ticket.ID[0], e.CID)
			default:
				fmt.Printf("    %T\n", e)
			}
		}
	}
	// Output:
	// core.OwnershipChanged
	//     core.Adopt
	//     core.Wake
	// *core.Offered
	//     core.RunNow
	// *core.Ticked
	//     order 1 (FirstInstance)
	// core.Joined
	//     core.Connect
	// *core.Pulled
	//     call 1 goes to 00000007-000001
}
