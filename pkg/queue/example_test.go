package queue_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// The oldest call goes to the first of the instances that poll. So two slow calls after one
// another keep one instance busy, and the other one starves until it may leave.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	q := queue.New(queue.Limits{MaxWaiting: 100, ClaimGrace: 2 * time.Second, CoolDown: 2 * time.Second})
	for _, cid := range []invocation.CID{"00000001-000002", "00000001-000001"} {
		q.Join(cid, 1)
		q.Pull(cid, queue.Pull{Credits: 1}, now)
	}
	call := func(n byte) {
		id := invocation.ID{n}
		q.Offer(invocation.Ticket{ID: id, Arrived: now, Deadline: now.Add(time.Minute)}, now)
		q.Match(now, false, func(cid invocation.CID, t *invocation.Ticket, _ bool) {
			fmt.Printf("call %d goes to %s\n", t.ID[0], cid)
			now = now.Add(time.Second)
			q.Done(cid, t.ID)
			q.Pull(cid, queue.Pull{Credits: 1}, now)
		})
	}
	call(1)
	call(2)
	answer, _ := q.RequestLeave("00000001-000002", time.Minute, queue.LeavePolicy{Min: 1, IdleTimeout: 30 * time.Second})
	fmt.Println("the other one may leave:", answer.Granted)
	// Output:
	// call 1 goes to 00000001-000001
	// call 2 goes to 00000001-000001
	// the other one may leave: true
}
