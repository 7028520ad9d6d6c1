package queue

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// from offers tickets of a gateway.
func from(t *testing.T, q *Queue, gateway string, tickets ...byte) {
	t.Helper()
	for _, n := range tickets {
		given := ticket(n)
		given.Gateway = gateway
		if err := q.Offer(given, start); err != nil {
			t.Fatal(err)
		}
	}
}

func coolingDownQueue(t *testing.T) *Queue {
	t.Helper()
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second, CoolDown: 5 * time.Second})
	mustJoin(t, q, 1, "a")
	from(t, q, "cut off", 1)
	expectMatched(t, q, "a1")
	q.Requeue("a", ticket(1).ID, start)
	if err := q.Pull("a", Pull{Credits: 1}, start); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestInstanceGetsTicketsOfOtherGatewaysThanTheOneItCannotReach(t *testing.T) {
	q := coolingDownQueue(t)
	expectMatched(t, q)
	from(t, q, "cut off", 2)
	from(t, q, "fine", 3)
	expectMatched(t, q, "a3")
	mustJoin(t, q, 2, "b")
	expectMatched(t, q, "b1", "b2")
}

func TestGatewayIsTriedAgainAfterTheCoolDown(t *testing.T) {
	q := coolingDownQueue(t)
	if got := matched(q, start.Add(5*time.Second-1)); got != nil {
		t.Errorf("handed out too early: %v", got)
	}
	if got := matched(q, start.Add(5*time.Second)); len(got) != 1 {
		t.Errorf("handed out %v, want a1", got)
	}
}

func TestCancelledTicketIsNotRequeued(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second, CoolDown: time.Second})
	mustJoin(t, q, 1, "a")
	from(t, q, "cut off", 1)
	expectMatched(t, q, "a1")
	q.Cancel(ticket(1).ID)
	q.Requeue("a", ticket(1).ID, start)
	if v := q.View(start); v.Waiting != 0 || v.Out != 0 {
		t.Errorf("it is still there: %+v", v)
	}
}

func TestCoolDownOutlivesClear(t *testing.T) {
	q := coolingDownQueue(t)
	q.Clear()
	from(t, q, "cut off", 2)
	expectMatched(t, q)
}

func TestClearedTicketsOfACoolingDownGatewayAreInOrder(t *testing.T) {
	q := coolingDownQueue(t)
	if !q.Drain("a") {
		t.Fatal("not drained")
	}
	from(t, q, "fine", 2, 4)
	from(t, q, "cut off", 3, 5)
	var got []byte
	for _, cleared := range q.Clear() {
		got = append(got, cleared.ID[0])
	}
	if string(got) != "\x01\x02\x03\x04\x05" {
		t.Errorf("cleared %v, want the order of arrival", got)
	}
}

// Many instances have a cool-down for a gateway with many waiting tickets, while the calls of
// another one go on.
func BenchmarkOfferMatchDoneBesideACoolingDownGateway(b *testing.B) {
	q := New(Limits{MaxWaiting: 20_000, ClaimGrace: time.Hour, CoolDown: time.Hour})
	away := invocation.Ticket{Gateway: "cut off", Arrived: start, Deadline: start.Add(time.Hour)}
	offer := func(n int) {
		away.ID = invocation.ID{1, byte(n), byte(n >> 8)}
		_ = q.Offer(away, start)
	}
	for n := range 100 {
		cid := invocation.Term{Epoch: 1}.CID(uint64(n))
		_ = q.Join(cid, 1)
		_ = q.Pull(cid, Pull{Credits: 1}, start)
		offer(n)
	}
	q.Match(start, false, func(invocation.CID, *invocation.Ticket, bool) {})
	for cid, in := range q.instances.joined {
		for len(in.out) > 0 {
			q.Requeue(cid, in.out[0].ticket.ID, start)
		}
		_ = q.Pull(cid, Pull{Credits: 1}, start)
	}
	for n := range 10_000 {
		offer(n)
	}
	t := ticket(1)
	t.Gateway = "fine"
	b.ReportAllocs()
	for b.Loop() {
		_ = q.Offer(t, start)
		var poller invocation.CID
		q.Match(start, false, func(cid invocation.CID, _ *invocation.Ticket, _ bool) { poller = cid })
		q.Done(poller, t.ID)
		_ = q.Pull(poller, Pull{Credits: 1}, start)
	}
}
