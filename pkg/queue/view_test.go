package queue

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Counting from both ends gives what a walk over all tickets counts, with queues per gateway too.
func TestStaleIsWhatAWalkCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(Limits{MaxWaiting: 100, ClaimGrace: time.Second, CoolDown: time.Hour})
		start := time.Unix(1000, 0)
		if err := q.Join("a", 1); err != nil {
			t.Fatal(err)
		}
		waits := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 30).Draw(t, "waits")
		for i, wait := range waits {
			ticket := invocation.Ticket{
				ID: invocation.ID{byte(i + 1)}, Gateway: rapid.SampledFrom([]string{"g", "h"}).Draw(t, "gateway"),
				Arrived: start.Add(-time.Duration(wait) * time.Second), Deadline: start.Add(time.Hour),
			}
			if err := q.Offer(ticket, start); err != nil {
				t.Fatal(err)
			}
		}
		if len(waits) > 0 && rapid.Bool().Draw(t, "cool down") {
			_ = q.Pull("a", Pull{Credits: 1}, start)
			q.Match(start, false, func(cid invocation.CID, ticket *invocation.Ticket, _ bool) { q.Requeue(cid, ticket.ID, start) })
		}
		after := rapid.IntRange(0, 20).Draw(t, "after")
		want := 0
		for _, wait := range waits {
			if wait >= after {
				want++
			}
		}
		if got := q.Stale(start, time.Duration(after)*time.Second); got != want {
			t.Fatalf("%d of %v have waited for %d s, counted %d", want, waits, after, got)
		}
	})
}
