package queue

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

var start = time.Unix(1_000_000, 0)

func ticket(n byte) invoke.Ticket {
	return invoke.Ticket{ID: invoke.ID{n}, Arrived: start.Add(time.Duration(n)), Deadline: start.Add(time.Minute)}
}

func mustOffer(t *testing.T, q *Queue, tickets ...byte) {
	t.Helper()
	for _, n := range tickets {
		if err := q.Offer(ticket(n), start); err != nil {
			t.Fatal(err)
		}
	}
}

func mustJoin(t *testing.T, q *Queue, credits int, cids ...invoke.CID) {
	t.Helper()
	for _, cid := range cids {
		if err := errors.Join(q.Join(cid, credits), q.Pull(cid, credits)); err != nil {
			t.Fatal(err)
		}
	}
}

// matched is who got which ticket, in order.
func matched(q *Queue, now time.Time) (got []string) {
	q.Match(now, func(cid invoke.CID, t invoke.Ticket) {
		got = append(got, string(cid)+string('0'+rune(t.ID[0])))
	})
	return got
}

func expectMatched(t *testing.T, q *Queue, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, matched(q, start)); diff != "" {
		t.Errorf("matched (-want +got):\n%s", diff)
	}
}

func TestOldestTicketGoesToFirstCID(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustOffer(t, q, 3, 1, 2)
	mustJoin(t, q, 1, "c", "a", "b")
	expectMatched(t, q, "a1", "b2", "c3")
}

// FPCSch IV-C: "Intermittently arrival requests flock to a few of containers
// of higher priority, and containers of lower priority are starved".
func TestCallsFlockToTheFirstInstance(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "b", "a")
	for n := byte(1); n < 5; n++ {
		mustOffer(t, q, n)
		expectMatched(t, q, "a"+string('0'+rune(n)))
		q.Done("a", ticket(n).ID)
		if err := q.Pull("a", 1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFullQueueRefusesNewTicketsOnly(t *testing.T) {
	q := New(Limits{MaxWaiting: 2, ClaimGrace: time.Second})
	mustOffer(t, q, 1, 2)
	if err := q.Offer(ticket(3), start); !errors.Is(err, ErrFull) {
		t.Errorf("a third ticket: %v", err)
	}
	if err := q.Offer(ticket(2), start); err != nil {
		t.Errorf("a ticket that waits already: %v", err)
	}
}

func TestTicketsOfALostInstanceGoBackToTheFront(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 2, "a")
	mustOffer(t, q, 1, 2)
	expectMatched(t, q, "a1", "a2")
	mustOffer(t, q, 3)
	q.Leave("a")
	mustJoin(t, q, 3, "b")
	expectMatched(t, q, "b1", "b2", "b3")
}

func TestTicketComesBackOnlyAfterClaimGrace(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "a", "b")
	mustOffer(t, q, 1)
	expectMatched(t, q, "a1")
	mustOffer(t, q, 1)
	expectMatched(t, q)
	if err := q.Offer(ticket(1), start.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	expectMatched(t, q, "b1")
}

func TestExpiredTicketsAreForgotten(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustOffer(t, q, 1)
	mustJoin(t, q, 1, "a")
	if n := q.Match(start.Add(time.Hour), func(invoke.CID, invoke.Ticket) { t.Error("handed out") }); n != 1 {
		t.Errorf("%d tickets expired, want 1", n)
	}
	if v := q.View(start); v.Waiting != 0 || v.Out != 0 {
		t.Errorf("left: %+v", v)
	}
}

func TestOnlyOneOfTwoIdleInstancesMayLeaveEarly(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "a", "b")
	policy := LeavePolicy{IdleTimeout: time.Minute, KeepLast: time.Hour}
	first, _ := q.RequestLeave("b", time.Minute, policy)
	second, _ := q.RequestLeave("a", time.Minute, policy)
	if !first.Granted || second.Granted || second.AskAgain != 59*time.Minute {
		t.Errorf("answers %+v and %+v", first, second)
	}
	if _, err := q.RequestLeave("b", time.Hour, policy); !errors.Is(err, ErrUnknownInstance) {
		t.Errorf("an instance that left: %v", err)
	}
}

func TestInstanceIsHandedNoMoreThanItsCapacity(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	if err := errors.Join(q.Join("a", 2), q.Pull("a", 1000), q.Pull("a", 1000)); err != nil {
		t.Fatal(err)
	}
	mustOffer(t, q, 1, 2, 3)
	expectMatched(t, q, "a1", "a2")
}

func TestRetiredInstanceFinishesAndLeaves(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 2, "a")
	mustOffer(t, q, 1)
	expectMatched(t, q, "a1")
	q.Retire("a")
	mustOffer(t, q, 2)
	if err := q.Pull("a", 1); err != nil {
		t.Fatal(err)
	}
	expectMatched(t, q)
	q.Done("a", ticket(1).ID)
	if answer, _ := q.RequestLeave("a", 0, LeavePolicy{Min: 5, IdleTimeout: time.Hour}); !answer.Granted {
		t.Errorf("a retired instance must stay: %+v", answer)
	}
}

func BenchmarkOfferMatchDone(b *testing.B) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	_ = q.Join("a", 1)
	_ = q.Pull("a", 1)
	t := ticket(1)
	b.ReportAllocs()
	for b.Loop() {
		_ = q.Offer(t, start)
		q.Match(start, func(invoke.CID, invoke.Ticket) {})
		q.Done("a", t.ID)
		_ = q.Pull("a", 1)
	}
}
