package queue

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

var start = time.Unix(1_000_000, 0)

func ticket(n byte) invocation.Ticket {
	return invocation.Ticket{ID: invocation.ID{n}, Arrived: start.Add(time.Duration(n)), Deadline: start.Add(time.Minute)}
}

func mustOffer(t *testing.T, q *Queue, tickets ...byte) {
	t.Helper()
	for _, n := range tickets {
		if err := q.Offer(ticket(n), start); err != nil {
			t.Fatal(err)
		}
	}
}

func mustJoin(t *testing.T, q *Queue, credits int, cids ...invocation.CID) {
	t.Helper()
	for _, cid := range cids {
		if err := errors.Join(q.Join(cid, credits), q.Pull(cid, Pull{Credits: credits}, start)); err != nil {
			t.Fatal(err)
		}
	}
}

// matched is who got which ticket, in order.
func matched(q *Queue, now time.Time) (got []string) {
	q.Match(now, false, func(cid invocation.CID, t *invocation.Ticket, _ bool) {
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
		if err := q.Pull("a", Pull{Credits: 1}, start); err != nil {
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
	q.Leave("a", start)
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

func TestCancelledTicketStaysWithItsHolderAndDoesNotWaitAgain(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "a")
	mustOffer(t, q, 1)
	expectMatched(t, q, "a1")
	if q.Cancel(ticket(1).ID) {
		t.Error("a ticket that was out is said to have waited")
	}
	if held := q.Leave("a", start); held != 1 {
		t.Errorf("held %d tickets, want 1", held)
	}
	mustJoin(t, q, 1, "b")
	expectMatched(t, q)
}

func TestReleasedTicketIsHandedOutUnderItsNewToken(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "a", "b")
	mustOffer(t, q, 1)
	expectMatched(t, q, "a1")
	again := ticket(1)
	again.Token = invocation.Token{9}
	if err := q.Offer(again, start); err != nil {
		t.Fatal(err)
	}
	q.Match(start, false, func(cid invocation.CID, got *invocation.Ticket, _ bool) {
		if cid != "b" || got.Token != again.Token {
			t.Errorf("%s got the token %v", cid, got.Token)
		}
	})
	q.Done("a", again.ID) // of the old ticket
	if v := q.View(start); v.Out != 1 {
		t.Errorf("the new ticket was forgotten with the old one: %+v", v)
	}
}

// A call that was lost with its instance may wait as long again, and one that an instance gave up waits
// on for what it had left.
func TestReleasedTicketWaitsUntilItsNewDeadline(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "a", "b")
	mustOffer(t, q, 1)
	expectMatched(t, q, "a1")
	again := ticket(1)
	again.Deadline = again.Deadline.Add(time.Minute)
	if err := q.Offer(again, start); err != nil { // under its old token, so it is the old ticket
		t.Fatal(err)
	}
	again.Token = invocation.Token{9}
	if err := q.Offer(again, start); err != nil {
		t.Fatal(err)
	}
	handed := 0
	expired := q.Match(again.Deadline.Add(-time.Second), false, func(_ invocation.CID, got *invocation.Ticket, _ bool) {
		handed++
		if !got.Deadline.Equal(again.Deadline) {
			t.Errorf("handed out until %v, want %v", got.Deadline, again.Deadline)
		}
	})
	if expired != 0 || handed != 1 {
		t.Errorf("%d tickets expired, and %d were handed out", expired, handed)
	}
}

func TestTicketsExpire(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustOffer(t, q, 1)
	mustJoin(t, q, 1, "a")
	if n := q.Match(start.Add(time.Hour), false, func(invocation.CID, *invocation.Ticket, bool) { t.Error("handed out") }); n != 1 {
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
	if !first.Granted || second.Granted || second.RetryAfter != 59*time.Minute {
		t.Errorf("answers %+v and %+v", first, second)
	}
	if _, err := q.RequestLeave("b", time.Hour, policy); !errors.Is(err, ErrUnknownInstance) {
		t.Errorf("an instance that left: %v", err)
	}
}

func TestInstanceIsHandedNoMoreThanItsCapacity(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	if err := errors.Join(q.Join("a", 2), q.Pull("a", Pull{Credits: 1000}, start), q.Pull("a", Pull{Credits: 1000}, start)); err != nil {
		t.Fatal(err)
	}
	mustOffer(t, q, 1, 2, 3)
	expectMatched(t, q, "a1", "a2")
}

func TestDrainingInstanceFinishesAndLeaves(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 2, "a")
	mustOffer(t, q, 1)
	expectMatched(t, q, "a1")
	q.Drain("a")
	mustOffer(t, q, 2)
	if err := q.Pull("a", Pull{Credits: 1}, start); err != nil {
		t.Fatal(err)
	}
	expectMatched(t, q)
	q.Done("a", ticket(1).ID)
	if answer, _ := q.RequestLeave("a", 0, LeavePolicy{Min: 5, IdleTimeout: time.Hour}); !answer.Granted {
		t.Errorf("a draining instance must stay: %+v", answer)
	}
}

func TestLongClaimedTicketsDoNotComeBack(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 2, "a")
	mustOffer(t, q, 1)
	expectMatched(t, q, "a1")
	later := start.Add(time.Second)
	if err := q.Offer(ticket(2), later); err != nil {
		t.Fatal(err)
	}
	q.Match(later, false, func(invocation.CID, *invocation.Ticket, bool) {})
	if held := q.Leave("a", later); held != 2 {
		t.Errorf("it held %d tickets, want 2", held)
	}
	if v := q.View(later); v.Waiting != 1 || v.Out != 0 {
		t.Errorf("left: %+v, want only the ticket that may be unclaimed", v)
	}
}

func TestTicketsExpireThoughNobodyPolls(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustOffer(t, q, 1, 2)
	if n := q.Match(start.Add(time.Hour), false, nil); n != 2 {
		t.Errorf("%d tickets expired, want 2", n)
	}
	if v := q.View(start); v.Waiting != 0 || v.Out != 0 {
		t.Errorf("left: %+v", v)
	}
}

func TestLongestIdleInstanceIsEvictedFirst(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "a", "b", "c")
	if err := q.Join("starting", 1); err != nil {
		t.Fatal(err)
	}
	mustOffer(t, q, 1)
	expectMatched(t, q, "a1")
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	policy := EvictPolicy{Min: 1, IdleFor: 5 * time.Second}
	expect := func(now time.Time, want ...IdleInstance) {
		t.Helper()
		if diff := cmp.Diff(want, q.LongestIdle(now, policy)); diff != "" {
			t.Errorf("evictable (-want +got):\n%s", diff)
		}
	}
	expect(at(4))
	expect(at(5), IdleInstance{"c", 5 * time.Second, at(0)}, IdleInstance{"b", 5 * time.Second, at(0)})
	q.Done("a", ticket(1).ID)
	if err := q.Pull("a", Pull{Credits: 1}, at(3)); err != nil {
		t.Fatal(err)
	}
	expect(at(8), IdleInstance{"c", 8 * time.Second, at(0)}, IdleInstance{"b", 8 * time.Second, at(0)}, IdleInstance{"a", 5 * time.Second, at(3)})
	if q.Evict("a", at(7), policy) || q.Evict("starting", at(9), policy) || q.Evict("unknown", at(9), policy) {
		t.Error("evicted one that is not idle for long enough")
	}
	if !q.Evict("c", at(9), policy) || q.Evict("c", at(9), policy) || !q.Evict("b", at(9), policy) {
		t.Error("an idle instance must be evicted, once")
	}
	expect(at(9))
	if q.Evict("a", at(9), policy) {
		t.Error("evicted the last of Min")
	}
}

func TestAnUnusedQueueKeepsNoMaps(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "a")
	mustOffer(t, q, 1, 2)
	expectMatched(t, q, "a1")
	q.Done("a", ticket(1).ID)
	if q.Leave("a", start); q.entries == nil {
		t.Fatal("a ticket waits, and is forgotten")
	}
	if q.Cancel(ticket(2).ID); q.entries != nil || q.instances.joined != nil {
		t.Error("maps are kept after the last ticket")
	}
	mustJoin(t, q, 1, "b")
	mustOffer(t, q, 3)
	expectMatched(t, q, "b3")
	q.Done("b", ticket(3).ID)
	if q.Leave("b", start); q.entries != nil || q.instances.joined != nil {
		t.Error("maps are kept after the last instance")
	}
	mustJoin(t, q, 1, "c")
	mustOffer(t, q, 4)
	expectMatched(t, q, "c4")
	q.Done("c", ticket(4).ID)
	if answer, err := q.RequestLeave("c", time.Hour, LeavePolicy{}); err != nil || !answer.Granted {
		t.Fatalf("an idle instance may not leave: %+v, %v", answer, err)
	}
	if q.entries != nil || q.instances.joined != nil || q.instances.pollers != nil {
		t.Error("maps or the heap are kept after the last instance has asked to leave")
	}
}

func TestInstanceThatHasNotAskedYetIsNoReasonToLeave(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustJoin(t, q, 1, "a")
	if err := q.Join("b", 1); err != nil {
		t.Fatal(err)
	}
	policy := LeavePolicy{Min: 1, IdleTimeout: time.Minute}
	if answer, _ := q.RequestLeave("a", time.Hour, policy); answer.Granted {
		t.Error("the only one that works may leave")
	}
}

func BenchmarkOfferMatchDone(b *testing.B) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	_ = q.Join("a", 1)
	_ = q.Pull("a", Pull{Credits: 1}, start)
	t := ticket(1)
	b.ReportAllocs()
	for b.Loop() {
		_ = q.Offer(t, start)
		q.Match(start, false, func(invocation.CID, *invocation.Ticket, bool) {})
		q.Done("a", t.ID)
		_ = q.Pull("a", Pull{Credits: 1}, start)
	}
}

// A scheduler that stood still for a minute reads at once what was sent meanwhile, as if it had just arrived.
func TestATicketThatWasLongOnItsWayHasItsAgeOnceItIsOfferedAgain(t *testing.T) {
	q := New(Limits{MaxWaiting: 10, ClaimGrace: time.Second})
	mustOffer(t, q, 1, 2, 3)
	late := ticket(3)
	late.Arrived = start.Add(-time.Minute)
	if err := q.Offer(late, start); err != nil {
		t.Fatal(err)
	}
	younger := ticket(1)
	younger.Arrived = start.Add(time.Minute)
	if err := q.Offer(younger, start); err != nil {
		t.Fatal(err)
	}
	mustJoin(t, q, 3, "a")
	expectMatched(t, q, "a3", "a1", "a2")
}
