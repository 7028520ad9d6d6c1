package fairshare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// divide plays one round in which room limits how many instances each want can
// have; nil means no limit. It returns how many each want got, and in all.
func divide(s *Shares, wants []Want, budget int, room []int) (got []int, total int) {
	got = make([]int, len(wants))
	r := s.Begin(wants, budget)
	for i, ok := r.Next(); ok; i, ok = r.Next() {
		free := room == nil || got[i] < room[i]
		if free {
			got[i]++
			total++
		}
		r.Launched(free)
	}
	return got, total
}

// jain is Jain's index of fairness: 1 if all have the same, 1/n if one has all.
func jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(x)) * squares)
}

func TestNamespacesOfEqualDemandGetTheSame(t *testing.T) {
	worst := 1.0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "namespaces")
		var wants []Want
		for ns := range n {
			// However many functions they are of, and whatever these cost.
			for f := range rapid.IntRange(1, 6).Draw(t, "functions") {
				wants = append(wants, Want{
					Namespace: fmt.Sprint("ns", ns), Function: fmt.Sprint("f", f), N: 1_000,
					Cost: int64(rapid.IntRange(1, 4).Draw(t, "cost")) * 100,
				})
			}
		}
		var s Shares
		spent := make([]float64, n)
		for range 200 {
			got, _ := divide(&s, wants, rapid.IntRange(1, 40).Draw(t, "budget"), nil)
			for i, had := range got {
				var ns int
				_, _ = fmt.Sscanf(wants[i].Namespace, "ns%d", &ns)
				spent[ns] += float64(had) * float64(wants[i].Cost)
			}
		}
		index := jain(spent)
		worst = min(worst, index)
		if index < 0.95 {
			t.Fatalf("Jain's index is %.3f: %v", index, spent)
		}
	})
	t.Logf("jain_index_worst=%.4f", worst)
}

// The budget is more than there is room for, which nobody knows before: the first of
// a namespace's functions must not take all of it.
func TestFunctionsOfOneNamespaceShareTheRoom(t *testing.T) {
	wants := make([]Want, 4)
	for i := range wants {
		wants[i] = Want{Namespace: "ns", Function: fmt.Sprint("f", i), N: 249, Cost: 1}
	}
	var s Shares
	got, room := make([]int, len(wants)), 316
	r := s.Begin(wants, 1024)
	for i, ok := r.Next(); ok; i, ok = r.Next() {
		free := room > 0
		if free {
			got[i]++
			room--
		}
		r.Launched(free)
	}
	if room > 0 || slices.Min(got) < 316/4 {
		t.Errorf("got %v, and %d was left", got, room)
	}
}

func TestNothingIsLeftWhileSomebodyCanHaveIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Shares
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			var wants []Want
			var room []int
			possible := 0
			for i := range rapid.IntRange(0, 12).Draw(t, "wants") {
				w := Want{
					Namespace: fmt.Sprint("ns", rapid.IntRange(0, 4).Draw(t, "namespace")), Function: fmt.Sprint("f", i),
					N: rapid.IntRange(0, 50).Draw(t, "n"), Cost: rapid.Int64Range(0, 5000).Draw(t, "cost"),
				}
				wants = append(wants, w)
				room = append(room, rapid.IntRange(0, 60).Draw(t, "room"))
				possible += min(w.N, room[i])
			}
			budget := rapid.IntRange(0, 200).Draw(t, "budget")
			got, total := divide(&s, wants, budget, room)
			if total != min(budget, possible) {
				t.Fatalf("%d were created of a budget of %d and a possible %d", total, budget, possible)
			}
			for i, n := range got {
				if n > wants[i].N {
					t.Fatalf("want %d got %d of %d", i, n, wants[i].N)
				}
			}
		}
	})
}

func TestWhoWantsLessThanItsShareGetsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "namespaces")
		budget := rapid.IntRange(n*8, 400).Draw(t, "budget")
		modest := rapid.IntRange(1, budget/n/2).Draw(t, "modest")
		wants := []Want{{Namespace: "modest", Function: "f", N: modest, Cost: 100}}
		for ns := range n - 1 {
			wants = append(wants, Want{Namespace: fmt.Sprint("greedy", ns), Function: "f", N: 100 * budget, Cost: 100})
		}
		var s Shares
		for range 3 {
			if got, _ := divide(&s, wants, budget, nil); got[0] != modest {
				t.Fatalf("it got %d of %d, with a budget of %d for %d namespaces", got[0], modest, budget, n)
			}
		}
	})
}

// A budget that is too small for everybody must reach everybody in the end.
func TestTurnsGoOnFromRoundToRound(t *testing.T) {
	var s Shares
	wants := make([]Want, 50)
	for i := range wants {
		wants[i] = Want{Namespace: fmt.Sprint("ns", i/5), Function: fmt.Sprint("f", i%5), N: 1_000, Cost: 1}
	}
	all := make([]int, len(wants))
	for range 50 {
		got, _ := divide(&s, wants, 1, nil)
		for i, n := range got {
			all[i] += n
		}
	}
	for i, n := range all {
		if n != 1 {
			t.Errorf("after 50 rounds of 1, function %s of %s has %d", wants[i].Function, wants[i].Namespace, n)
		}
	}
}

// Rounds in which room is scarce end in the middle of a turn or between two.
func TestScarceRoomIsSharedFromRoundToRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespaces, functions := rapid.IntRange(1, 4).Draw(t, "namespaces"), rapid.IntRange(1, 5).Draw(t, "functions")
		n := rapid.IntRange(1, 60).Draw(t, "n")
		var wants []Want
		for i := range namespaces * functions {
			wants = append(wants, Want{Namespace: fmt.Sprint("ns", i%namespaces), Function: fmt.Sprint("f", i/namespaces), N: n, Cost: 100})
		}
		var s Shares
		got := make(map[string]int)
		all := 0
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			room := rapid.IntRange(0, 2*len(wants)).Draw(t, "room")
			// The scheduler's are in no order.
			wants = rapid.Permutation(wants).Draw(t, "order")
			r := s.Begin(wants, rapid.IntRange(0, 100).Draw(t, "budget"))
			for i, ok := r.Next(); ok; i, ok = r.Next() {
				if room > 0 {
					got[wants[i].Namespace+wants[i].Function]++
					all++
					room--
					r.Launched(true)
				} else {
					r.Launched(false)
				}
			}
		}
		for _, w := range wants {
			if had := got[w.Namespace+w.Function]; had < all/len(wants) {
				t.Fatalf("%s of %s got %d of %d, which %d share", w.Function, w.Namespace, had, all, len(wants))
			}
		}
	})
}

func TestNoNamespaceHasMoreOfScarceRoomForItsManyFunctions(t *testing.T) {
	var wants []Want
	for i := range 20 {
		wants = append(wants, Want{Namespace: "many", Function: fmt.Sprint("f", i), N: 5, Cost: 100})
	}
	wants = append(wants, Want{Namespace: "one", Function: "f", N: 5, Cost: 100})
	var s Shares
	got := make(map[string]int)
	for range 200 {
		rand.Shuffle(len(wants), func(i, j int) { wants[i], wants[j] = wants[j], wants[i] })
		free := true
		r := s.Begin(wants, 100)
		for i, ok := r.Next(); ok; i, ok = r.Next() {
			if free {
				got[wants[i].Namespace+" "+wants[i].Function]++
			}
			r.Launched(free)
			free = false
		}
	}
	for _, w := range wants {
		if want := map[string]int{"many": 5, "one": 100}[w.Namespace]; got[w.Namespace+" "+w.Function] != want {
			t.Errorf("%s of %s got %d, want %d", w.Function, w.Namespace, got[w.Namespace+" "+w.Function], want)
		}
	}
}

func BenchmarkRound(b *testing.B) {
	wants := make([]Want, 10_000)
	for i := range wants {
		wants[i] = Want{Namespace: fmt.Sprint("ns", i%100), Function: fmt.Sprint("f", i), N: 1, Cost: 100}
	}
	var s Shares
	for b.Loop() {
		divide(&s, wants, 10, nil)
	}
}

// Of one namespace, whose first instance is waited for the longest comes first, and
// nobody gets a second one before all have their first.
func TestWhoHasWaitedLongestForAFirstInstanceIsFirst(t *testing.T) {
	wants := []Want{
		{Namespace: "ns", Function: "more", N: 9, Cost: 1},
		{Namespace: "ns", Function: "late", N: 5, Cost: 1, Waited: 1},
		{Namespace: "ns", Function: "soon", N: 5, Cost: 1, Waited: 3},
		{Namespace: "ns", Function: "next", N: 5, Cost: 1, Waited: 2},
	}
	for budget, want := range map[int][]int{1: {0, 0, 1, 0}, 2: {0, 0, 1, 1}, 3: {0, 1, 1, 1}} {
		var s Shares
		if got, _ := divide(&s, wants, budget, nil); !slices.Equal(got, want) {
			t.Errorf("with a budget of %d they get %v, want %v", budget, got, want)
		}
	}
}

// Nobody waits for it, so whatever else its namespace wants comes first; other namespaces
// have their turns as ever.
func TestWhoIsLastComesAfterAllOthersOfItsNamespace(t *testing.T) {
	wants := []Want{
		{Namespace: "ns", Function: "a", N: 1, Cost: 1, Last: true},
		{Namespace: "ns", Function: "more", N: 9, Cost: 1},
		{Namespace: "ns", Function: "waits", N: 2, Cost: 1, Waited: 1},
	}
	for budget, want := range map[int][]int{1: {0, 0, 1}, 11: {0, 9, 2}, 12: {1, 9, 2}} {
		var s Shares
		if got, _ := divide(&s, wants, budget, nil); !slices.Equal(got, want) {
			t.Errorf("with a budget of %d they get %v, want %v", budget, got, want)
		}
	}
	var s Shares
	got, _ := divide(&s, append(wants[1:2:2], Want{Namespace: "other", Function: "f", N: 1, Cost: 1, Last: true}), 4, nil)
	if !slices.Equal(got, []int{3, 1}) {
		t.Errorf("beside another namespace they get %v", got)
	}
}
