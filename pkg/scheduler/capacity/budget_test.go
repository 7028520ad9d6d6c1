package capacity

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The first of all namespaces come before the second of any, and in each namespace those
// come first that have waited for longest.
func TestNamespacesTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Contender {
			return Contender{
				Namespace: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace"),
				Waited:    time.Duration(rapid.IntRange(0, 5).Draw(t, "waited")),
			}
		}), 0, 12).Draw(t, "functions")
		for i := range turns {
			turns[i].Index = i
		}
		RoundRobin(turns)
		seen, of, last := make(map[int]bool), make(map[string]int), make(map[string]time.Duration)
		lap := 0
		for _, turn := range turns {
			if before, found := last[turn.Namespace]; found && before < turn.Waited {
				t.Fatalf("%+v comes after one of its namespace that has waited for %v", turn, before)
			}
			last[turn.Namespace] = turn.Waited
			if of[turn.Namespace] < lap {
				t.Fatalf("%+v is number %d of its namespace, and comes after a number %d", turn, of[turn.Namespace], lap)
			}
			lap = of[turn.Namespace]
			of[turn.Namespace]++
			seen[turn.Index] = true
		}
		if len(seen) != len(turns) {
			t.Fatalf("%d of %d functions have a turn", len(seen), len(turns))
		}
	})
}

func TestWhoIsLastHasRoomMadeAfterTheOthersOfItsNamespace(t *testing.T) {
	turns := []Contender{
		{Index: 0, Namespace: "a", Last: true}, {Index: 1, Namespace: "a"}, {Index: 2, Namespace: "b", Last: true}, {Index: 3, Namespace: "a", Waited: 1},
	}
	RoundRobin(turns)
	var got []int
	for _, turn := range turns {
		got = append(got, turn.Index)
	}
	if !slices.Equal(got, []int{3, 2, 1, 0}) {
		t.Errorf("the order is %v", got)
	}
}

func TestHalfOfABurstIsKeptForTicks(t *testing.T) {
	b, now := NewBudget(10, 8), time.Unix(1000, 0)
	if left, urgent := b.Left(now), b.LeftNow(now); left != 8 || urgent != 4 {
		t.Errorf("%d are left, %d for urgent ones; want 8 and 4", left, urgent)
	}
	b.Spend(now, 6)
	if left, urgent := b.Left(now), b.LeftNow(now); left != 2 || urgent != 0 {
		t.Errorf("%d are left, %d for urgent ones; want 2 and 0", left, urgent)
	}
	if left := b.Left(now.Add(300 * time.Millisecond)); left != 5 {
		t.Errorf("%d are left after 300 ms, want 5", left)
	}
	unbounded := NewBudget(0, 0)
	unbounded.Spend(now, 1<<20)
	if left := unbounded.Left(now); left != maxLaunches {
		t.Errorf("%d are left without a rate, want %d", left, maxLaunches)
	}
}
