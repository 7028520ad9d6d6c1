package core_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// An agent runs two calls of one gateway: it pulls, claims the call of the ticket that it gets,
// starts the function, and reports that the place stays with the gateway. The second call comes
// directly from there, without a word to the scheduler.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	agent := core.New(core.Params{
		Owner: "scheduler-0:9443", Concurrency: 1, BackoffAfter: 10 * time.Second, IdleTimeout: 5 * time.Minute, Jitter: 1,
	})
	ticket := invocation.Ticket{ID: invocation.ID{1}, Gateway: "gateway-0:9443", Deadline: now.Add(time.Minute)}
	for _, event := range []core.Event{
		core.Begin{},
		core.Opened{Session: 1},
		core.Received{Session: 1, Reply: core.Welcome{Epoch: 7}},
		core.FunctionReady{},
		core.Received{Session: 1, Reply: core.Ticket{Ticket: ticket, Lent: true}},
		core.ConnOpened{Conn: 1},
		core.Granted{Attempt: 1},
		core.CallEnded{Attempt: 1, Outcome: core.Complete, Exec: 50 * time.Millisecond},
		core.Called{Conn: 1, Call: 2, ID: invocation.ID{2}},
		core.CallEnded{Attempt: 2, Outcome: core.Complete, Exec: 50 * time.Millisecond},
	} {
		if received, ok := event.(core.Received); ok {
			fmt.Printf("%T: %T\n", received, received.Reply)
		} else {
			fmt.Printf("%T\n", event)
		}
		for _, effect := range agent.Step(now, event) {
			switch e := effect.(type) {
			case core.Send:
				fmt.Printf("    core.Send: %T\n", e.Message)
			case core.WakeAt, core.RunAudit:
			default:
				fmt.Printf("    %T\n", e)
			}
		}
	}
	// Output:
	// core.Begin
	//     core.Dial
	// core.Opened
	//     core.Send: core.Hello
	// core.Received: core.Welcome
	// core.FunctionReady
	//     core.Send: core.Pull
	// core.Received: core.Ticket
	//     core.Connect
	// core.ConnOpened
	//     core.Claim
	// core.Granted
	//     core.Start
	// core.CallEnded
	//     core.Deliver
	//     core.Send: core.Pull
	// core.Called
	//     core.Accept
	//     core.Start
	// core.CallEnded
	//     core.Deliver
}
