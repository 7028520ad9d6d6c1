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
		asked, able, granted := 0, false, 0
		for i, n := range splitRequest(want, offers) {
			if n < 0 || offers[i].exhausted && n > offers[i].granted {
				t.Fatalf("%d are asked of %+v", n, offers[i])
			}
			asked += n
			granted += offers[i].granted
			able = able || !offers[i].exhausted
		}
		if least := min(want, granted); asked > want || asked < least || able && asked < want {
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
		b.RecordGrants(id, nil, now)
	}
	b.SetShortages([]Shortage{{Shape: of, UID: "f", Instances: 1, Waited: time.Second}})
	granted := 0
	for range 12 {
		asked, total := make(map[string]int), 0
		for _, id := range peers {
			for _, w := range b.RequestsTo(id, now) {
				asked[id] = w.Instances
				total += w.Instances
			}
		}
		if total != 1 {
			t.Errorf("%d were asked for: %v", total, asked)
		}
		for _, id := range peers {
			m := Grant{Exhausted: id != rich}
			if id == rich {
				m.Instances, granted = asked[id], max(granted, asked[id])
			}
			b.RecordGrants(id, map[Shape]Grant{of: m}, now)
		}
		now = now.Add(500 * time.Millisecond)
	}
	if granted != 1 || !b.MayGrant(of, now.Add(-500*time.Millisecond)) {
		t.Errorf("room was made: %d", granted)
	}
	b.SetShortages(nil)
	if got := b.RequestsTo(rich, now); len(got) != 0 {
		t.Errorf("what is not wanted any more is asked for: %v", got)
	}
}

// Who makes nothing, or knows no such thing, gives no hope for long.
func TestAPeerThatGrantsNothingIsGivenUp(t *testing.T) {
	b, now := NewBorrower("self"), time.Unix(1000, 0)
	of := Shape{Where: "there"}
	b.SetShortages([]Shortage{{Shape: of, UID: "f", Instances: 1}})
	if b.MayGrant(of, now) {
		t.Error("there is nobody")
	}
	until := now.Add(10 * time.Second)
	hoped := 0
	for ; now.Before(until); now = now.Add(500 * time.Millisecond) {
		for n := range 2 {
			b.RecordGrants(fmt.Sprint("old-", n), nil, now)
			b.RequestsTo(fmt.Sprint("old-", n), now)
		}
		if b.MayGrant(of, now) {
			hoped++
		}
	}
	if hoped == 0 || b.MayGrant(of, now.Add(-500*time.Millisecond)) {
		t.Errorf("hoped %d times, and at the end as well", hoped)
	}
}

// What is asked for is bounded, and those that have waited longest come first.
func TestWhatIsAskedForIsBounded(t *testing.T) {
	b, now := NewBorrower("self"), time.Unix(1000, 0)
	b.RecordGrants("a", nil, now)
	var wants []Shortage
	for n := range 3 * MaxShortages {
		wants = append(wants, Shortage{Shape: Shape{Where: fmt.Sprint(n)}, UID: fmt.Sprint("f", n), Instances: 10 * MaxInstances, Waited: time.Duration(n)})
	}
	b.SetShortages(wants)
	asked := b.RequestsTo("a", now)
	if len(asked) != MaxShortages || asked[0].UID != fmt.Sprint("f", 3*MaxShortages-1) || asked[0].Instances != MaxInstances {
		t.Errorf("asked: %+v", asked)
	}
}
