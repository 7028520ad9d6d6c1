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
		fmt.Printf("idempotent: %v, waits again: %v, fails: %v, executed: %q\n", idempotent, d.Wait, d.Fail, d.Failure.Executed)
	}
	// Output:
	// another instance: gateway: the invocation is not waiting
	// idempotent: false, waits again: false, fails: true, executed: "maybe"
	// another instance: gateway: the invocation is not waiting
	// idempotent: true, waits again: true, fails: false, executed: ""
}

// An instance that has claimed a call keeps the place for the gateway, which gives it to the next
// call without a ticket. A call that finds all loans busy waits, and gets the first one that is
// free.
func ExamplePool() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var pool core.Pool[string, string]
	instance := core.NewLender("00000001-000001", "the instance")
	handOver := func() {
		for {
			w, by, ok := pool.Next()
			if !ok {
				return
			}
			pool.Handed(w, now)
			fmt.Println(w.Call, "goes to", by.Instance)
		}
	}
	wait := func(call string) *core.Waiting[string] {
		w := &core.Waiting[string]{Call: call, Since: now}
		fmt.Println(call, "sends a ticket:", pool.Add(w, now, false))
		handOver()
		return w
	}
	first := wait("first")
	pool.Began(instance) // it claims the ticket
	pool.Taken(first)
	pool.Ended(instance, true)
	wait("second")
	wait("third") // as a probe: another instance may be free
	wait("fourth")
	for range 2 {
		pool.Ended(instance, true)
		handOver()
	}
	fmt.Printf("%+v\n", pool.Report())
	// Output:
	// first sends a ticket: true
	// second sends a ticket: false
	// second goes to the instance
	// third sends a ticket: true
	// fourth sends a ticket: false
	// third goes to the instance
	// fourth goes to the instance
	// {Served:2 Waiting:0 Running:1 Lent:1 Executions:0 ExecutionTime:0s CoreWaited:0s}
}
