package capacity

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
		for i, n := range divide(want, offers) {
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
	b, now := NewBorrower("self"), time.Unix(1000, 0)
	of := Shape{Where: "there"}
	peers := []string{"a", "b", "c"}
	rich := "b"
	for _, id := range peers {
		b.Answered(id, nil, now)
	}
	b.Lack([]Lack{{Shape: of, UID: "f", Instances: 1, Waited: time.Second}})
	made := 0
	for range 12 {
		asked, total := make(map[string]int), 0
		for _, id := range peers {
			for _, w := range b.Ask(id, now) {
				asked[id] = w.Instances
				total += w.Instances
			}
		}
		if total != 1 {
			t.Errorf("%d were asked for: %v", total, asked)
		}
		for _, id := range peers {
			m := Made{Exhausted: id != rich}
			if id == rich {
				m.Instances, made = asked[id], max(made, asked[id])
			}
			b.Answered(id, map[Shape]Made{of: m}, now)
		}
		now = now.Add(500 * time.Millisecond)
	}
	if made != 1 || !b.Hope(of, now.Add(-500*time.Millisecond)) {
		t.Errorf("room was made: %d", made)
	}
	b.Lack(nil)
	if got := b.Ask(rich, now); len(got) != 0 {
		t.Errorf("what is not wanted any more is asked for: %v", got)
	}
}

// Who makes nothing, or knows no such thing, gives no hope for long.
func TestHopeEnds(t *testing.T) {
	b, now := NewBorrower("self"), time.Unix(1000, 0)
	of := Shape{Where: "there"}
	b.Lack([]Lack{{Shape: of, UID: "f", Instances: 1}})
	if b.Hope(of, now) {
		t.Error("there is nobody")
	}
	until := now.Add(10 * time.Second)
	hoped := 0
	for ; now.Before(until); now = now.Add(500 * time.Millisecond) {
		for n := range 2 {
			b.Answered(fmt.Sprint("old-", n), nil, now)
			b.Ask(fmt.Sprint("old-", n), now)
		}
		if b.Hope(of, now) {
			hoped++
		}
	}
	if hoped == 0 || b.Hope(of, now.Add(-500*time.Millisecond)) {
		t.Errorf("hoped %d times, and at the end as well", hoped)
	}
}

// What is asked for is bounded, and those that have waited longest come first.
func TestWhatIsAskedForIsBounded(t *testing.T) {
	b, now := NewBorrower("self"), time.Unix(1000, 0)
	b.Answered("a", nil, now)
	var wants []Lack
	for n := range 3 * MaxLacks {
		wants = append(wants, Lack{Shape: Shape{Where: fmt.Sprint(n)}, UID: fmt.Sprint("f", n), Instances: 10 * MaxInstances, Waited: time.Duration(n)})
	}
	b.Lack(wants)
	asked := b.Ask("a", now)
	if len(asked) != MaxLacks || asked[0].UID != fmt.Sprint("f", 3*MaxLacks-1) || asked[0].Instances != MaxInstances {
		t.Errorf("asked: %+v", asked)
	}
}
