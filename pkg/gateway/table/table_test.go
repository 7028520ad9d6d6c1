package table

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

var now = time.Unix(1_000_000, 0)

func admitted(t *testing.T, ids ...byte) *Table[string] {
	t.Helper()
	table := New[string](len(ids))
	for _, n := range ids {
		in := Invocation[string]{ID: invoke.ID{n}, Token: invoke.Token{n}, Payload: string('a' + rune(n))}
		if err := table.Admit(in, now); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

func TestOnlyOneInstanceClaims(t *testing.T) {
	table := admitted(t, 1)
	got, err := table.Claim(invoke.ID{1}, invoke.Token{1}, "x")
	if err != nil || got.Attempt != 1 || got.Payload != "b" || got.Reoffered {
		t.Fatalf("claim: %+v, %v", got, err)
	}
	if _, err := table.Claim(invoke.ID{1}, invoke.Token{1}, "y"); !errors.Is(err, ErrNotWaiting) {
		t.Errorf("second claim: %v", err)
	}
	if _, _, withdrawn := table.Withdraw(invoke.ID{1}); withdrawn {
		t.Error("a claimed invocation was withdrawn")
	}
	if e := table.Executed(invoke.ID{1}); e != invoke.ExecutedMaybe {
		t.Errorf("a claimed invocation says %q", e)
	}
}

func TestClaimNeedsTheTicketsToken(t *testing.T) {
	table := admitted(t, 1)
	if _, err := table.Claim(invoke.ID{1}, invoke.Token{9}, "x"); !errors.Is(err, ErrBadToken) {
		t.Errorf("wrong token: %v", err)
	}
	if _, err := table.Claim(invoke.ID{2}, invoke.Token{}, "x"); !errors.Is(err, ErrNotWaiting) {
		t.Errorf("unknown invocation: %v", err)
	}
	if e := table.Executed(invoke.ID{1}); e != invoke.ExecutedNo {
		t.Errorf("a queued invocation says %q", e)
	}
}

func TestReleasedInvocationNeedsTheNewToken(t *testing.T) {
	table := admitted(t, 1, 2)
	first, _ := table.Claim(invoke.ID{1}, invoke.Token{1}, "x")
	later := now.Add(time.Second)
	released, err := table.Release(invoke.ID{1}, first.Attempt, invoke.Token{7}, later)
	if err != nil || released.ID != (invoke.ID{1}) || released.Token != (invoke.Token{7}) {
		t.Fatalf("release: %+v, %v", released, err)
	}
	if _, err := table.Release(invoke.ID{1}, first.Attempt, invoke.Token{8}, later); !errors.Is(err, ErrStale) {
		t.Errorf("second release: %v", err)
	}
	if due := table.Due(later, before(later)); len(due) != 1 || due[0].ID != (invoke.ID{2}) {
		t.Errorf("due besides the one just released: %+v", due)
	}
	if _, err := table.Claim(invoke.ID{1}, invoke.Token{1}, "y"); !errors.Is(err, ErrBadToken) {
		t.Errorf("old token: %v", err)
	}
	second, err := table.Claim(invoke.ID{1}, invoke.Token{7}, "y")
	if err != nil || second.Attempt != 2 || !second.Reoffered {
		t.Errorf("second attempt: %+v, %v", second, err)
	}
	if err := table.End(invoke.ID{1}, first.Attempt); !errors.Is(err, ErrStale) {
		t.Errorf("the first attempt ended the second: %v", err)
	}
	if err := table.End(invoke.ID{1}, second.Attempt); err != nil || table.Len() != 1 {
		t.Errorf("end: %v, %d left", err, table.Len())
	}
}

func TestFullTableRefuses(t *testing.T) {
	table := admitted(t, 1, 2)
	if err := table.Admit(Invocation[string]{ID: invoke.ID{3}}, now); !errors.Is(err, ErrFull) {
		t.Errorf("a third: %v", err)
	}
}

func TestTicketsAreDueAgainOnlyWhileQueued(t *testing.T) {
	table := admitted(t, 1, 2)
	_, _ = table.Claim(invoke.ID{1}, invoke.Token{1}, "x")
	later := now.Add(time.Second)
	if due := table.Due(later, before(now)); len(due) != 0 {
		t.Errorf("too early: %v", due)
	}
	if due := table.Due(later, before(later)); len(due) != 1 || due[0].ID != (invoke.ID{2}) {
		t.Errorf("due: %v", due)
	}
	if due := table.Due(later, before(later)); len(due) != 0 {
		t.Errorf("due twice: %v", due)
	}
}

func TestATicketThatNoQueueHasIsDue(t *testing.T) {
	table := admitted(t, 1, 2)
	_, _ = table.Claim(invoke.ID{1}, invoke.Token{1}, "x")
	for id := range byte(4) { // also one that is claimed, and one that is unknown
		table.Unoffer(invoke.ID{id})
	}
	if due := table.Due(now, before(now)); len(due) != 1 || due[0].ID != (invoke.ID{2}) {
		t.Errorf("due: %v", due)
	}
}

// At no time do two instances hold an invocation, and none that was withdrawn
// or has ended is ever granted.
func TestClaimsAreExclusive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 4
		table := New[byte](n)
		holder, gone := map[byte]int{}, map[byte]bool{}
		for i := range byte(n) {
			_ = table.Admit(Invocation[byte]{ID: invoke.ID{i}, Payload: i}, now)
		}
		queued := n
		for range 60 {
			i := rapid.ByteRange(0, n-1).Draw(t, "invocation")
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0:
				got, err := table.Claim(invoke.ID{i}, invoke.Token{}, "x")
				if (err == nil) != (holder[i] == 0 && !gone[i]) {
					t.Fatalf("claim of %d: %v; holder %d, gone %v", i, err, holder[i], gone[i])
				}
				if err == nil {
					holder[i] = got.Attempt
					queued--
				}
			case 1:
				if _, err := table.Release(invoke.ID{i}, holder[i], invoke.Token{}, now); err == nil {
					holder[i] = 0
					queued++
				}
			case 2:
				if _, _, ok := table.Withdraw(invoke.ID{i}); ok {
					if holder[i] != 0 || gone[i] {
						t.Fatalf("withdrew %d, holder %d", i, holder[i])
					}
					gone[i] = true
					queued--
				}
			case 3:
				if table.End(invoke.ID{i}, holder[i]) == nil {
					if holder[i] == 0 {
						t.Fatalf("ended %d, which was queued", i)
					}
					gone[i], holder[i] = true, 0
				}
			}
			if table.Queued() != queued || table.Len() != n-len(gone) {
				t.Fatalf("queued %d of %d, want %d of %d", table.Queued(), table.Len(), queued, n-len(gone))
			}
		}
	})
}

// before is due whatever was last offered before a time.
func before(t time.Time) func(string, time.Time) bool {
	return func(_ string, offered time.Time) bool { return offered.Before(t) }
}

func TestM7ARetryHasADeadlineOfItsOwn(t *testing.T) {
	table := New[string](1)
	id, first, second := invoke.ID{1}, now.Add(time.Minute), now.Add(3*time.Minute)
	if err := table.Admit(Invocation[string]{ID: id, Token: invoke.Token{1}, Deadline: first}, now); err != nil {
		t.Fatal(err)
	}
	if _, _, expired := table.Expire(id, first.Add(-1)); expired {
		t.Error("it expired before its deadline")
	}
	if _, err := table.Claim(id, invoke.Token{1}, "x"); err != nil {
		t.Fatal(err)
	}
	if _, _, expired := table.Expire(id, first); expired {
		t.Error("it expired while it was claimed")
	}
	in, err := table.Retry(id, 1, invoke.Token{2}, first.Add(time.Minute), second)
	if err != nil || !in.Deadline.Equal(second) {
		t.Fatalf("queued again until %v, %v", in.Deadline, err)
	}
	if _, _, expired := table.Expire(id, second.Add(-1)); expired {
		t.Error("the retry expired before its deadline")
	}
	if _, executed, expired := table.Expire(id, second); !expired || executed != invoke.ExecutedMaybe {
		t.Errorf("at the retry's deadline: %v, %q", expired, executed)
	}
}
