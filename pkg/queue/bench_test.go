package queue

import (
	"strconv"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// pollingQueue is a queue with instances that all ask for a ticket.
func pollingQueue(tb testing.TB, instances int) (*Queue, []invocation.CID) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	cids := make([]invocation.CID, instances)
	for i := range cids {
		cids[i] = invocation.Term{Epoch: 1}.CID(uint64(i))
		if err := q.Join(cids[i], 1); err != nil {
			tb.Fatal(err)
		}
		if err := q.Pull(cids[i], Pull{Credits: 1}, start); err != nil {
			tb.Fatal(err)
		}
	}
	return q, cids
}

// BenchmarkCrowd is what calls cost among few and among many instances of their
// function: one that is handed out and done with, a look at the queue, and a request
// to leave that is refused.
func BenchmarkCrowd(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		q, cids := pollingQueue(b, n)
		b.Run("call/"+strconv.Itoa(n), func(b *testing.B) {
			t := ticket(1)
			for b.Loop() {
				var poller invocation.CID
				_ = q.Offer(t, start)
				q.Match(start, false, func(cid invocation.CID, _ *invocation.Ticket, _ bool) { poller = cid })
				q.Done(poller, t.ID)
				_ = q.Pull(poller, Pull{Credits: 1}, start)
			}
		})
		b.Run("view/"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				_ = q.View(start)
			}
		})
		b.Run("leave/"+strconv.Itoa(n), func(b *testing.B) {
			policy := LeavePolicy{Min: n, IdleTimeout: time.Minute}
			for i := 0; b.Loop(); i++ {
				_, _ = q.RequestLeave(cids[i%n], time.Hour, policy)
			}
		})
	}
}
