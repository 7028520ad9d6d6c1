package scheduler

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What several are asked for is never more than is wanted, and all of it as long as
// somebody may have more.
func TestAWantIsDividedAndNotMultiplied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) offer {
			return offer{rapid.IntRange(0, 5).Draw(t, "made"), rapid.Bool().Draw(t, "exhausted")}
		}), 0, 6).Draw(t, "offers")
		want := rapid.IntRange(0, 12).Draw(t, "want")
		asked, able, made := 0, false, 0
		for i, n := range divideWant(want, offers) {
			if n < 0 || offers[i].exhausted && n > offers[i].made {
				t.Fatalf("%d are asked of %+v", n, offers[i])
			}
			asked += n
			made += offers[i].made
			able = able || !offers[i].exhausted
		}
		if least := min(want, made); asked > want || asked < least || able && asked < want {
			t.Fatalf("%d of %d are asked", asked, want)
		}
	})
}

// Each room is asked of one after the other until one has it: none makes room for what
// another one has made.
func TestARoomIsAskedOfOneAfterTheOther(t *testing.T) {
	a, now := newAsks("self"), time.Unix(1000, 0)
	of := placement{where: "there"}
	peers := []string{"a", "b", "c"}
	rich := "b"
	for _, id := range peers {
		a.answered(id, nil, now)
	}
	a.set([]roomWant{{of: of, uid: "f", n: 1, waited: time.Second}})
	made := 0
	for range 12 {
		asked, total := make(map[string]int), 0
		for _, id := range peers {
			for _, w := range a.ask(id, now) {
				asked[id] = w.n
				total += w.n
			}
		}
		if total != 1 {
			t.Errorf("%d were asked for: %v", total, asked)
		}
		for _, id := range peers {
			m := madeRoom{exhausted: id != rich}
			if id == rich {
				m.n, made = asked[id], max(made, asked[id])
			}
			a.answered(id, map[placement]madeRoom{of: m}, now)
		}
		now = now.Add(500 * time.Millisecond)
	}
	if made != 1 || !a.hope(of, now.Add(-500*time.Millisecond)) {
		t.Errorf("room was made: %d", made)
	}
	a.set(nil)
	if got := a.ask(rich, now); len(got) != 0 {
		t.Errorf("what is not wanted any more is asked for: %v", got)
	}
}

// Who makes nothing, or knows no such thing, gives no hope for long.
func TestHopeEnds(t *testing.T) {
	a, now := newAsks("self"), time.Unix(1000, 0)
	of := placement{where: "there"}
	a.set([]roomWant{{of: of, uid: "f", n: 1}})
	if a.hope(of, now) {
		t.Error("there is nobody")
	}
	until := now.Add(10 * time.Second)
	hoped := 0
	for ; now.Before(until); now = now.Add(500 * time.Millisecond) {
		for n := range 2 {
			a.answered(fmt.Sprint("old-", n), nil, now)
			a.ask(fmt.Sprint("old-", n), now)
		}
		if a.hope(of, now) {
			hoped++
		}
	}
	if hoped == 0 || a.hope(of, now.Add(-500*time.Millisecond)) {
		t.Errorf("hoped %d times, and at the end as well", hoped)
	}
}

// What is asked for is bounded, and those that have waited longest come first.
func TestWhatIsAskedForIsBounded(t *testing.T) {
	a, now := newAsks("self"), time.Unix(1000, 0)
	a.answered("a", nil, now)
	var wants []roomWant
	for n := range 3 * maxWants {
		wants = append(wants, roomWant{of: placement{where: fmt.Sprint(n)}, uid: fmt.Sprint("f", n), n: 10 * maxWanted, waited: time.Duration(n)})
	}
	a.set(wants)
	asked := a.ask("a", now)
	if len(asked) != maxWants || asked[0].uid != fmt.Sprint("f", 3*maxWants-1) || asked[0].n != maxWanted {
		t.Errorf("asked: %+v", asked)
	}
}
