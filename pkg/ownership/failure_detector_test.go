package ownership

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPulse(t *testing.T) {
	const ms = time.Millisecond
	start := time.Unix(1000, 0)
	type step struct {
		at   time.Duration
		what string
		want bool // silent
	}
	tests := map[string][]step{
		"one that answers is there": {
			{0, "look", false}, {400 * ms, "answer", false}, {500 * ms, "look", false}, {1000 * ms, "look", false}, {1500 * ms, "look", false},
		},
		"three missed heartbeats are silence": {
			{0, "answer", false}, {500 * ms, "look", false}, {1000 * ms, "look", false}, {1499 * ms, "look", false}, {1500 * ms, "look", true},
		},
		"one that never answers is silent after three heartbeats": {
			{500 * ms, "look", false}, {1000 * ms, "look", false}, {1500 * ms, "look", true},
		},
		"a refused connection is silence at once": {
			{0, "answer", false}, {10 * ms, "refuse", true}, {500 * ms, "look", true},
		},
		"one that does not serve is silent at once": {
			{0, "answer", false}, {10 * ms, "stop", true}, {500 * ms, "look", true},
		},
		"one that is back must answer for a while": {
			{0, "refuse", true}, {100 * ms, "answer", true}, {600 * ms, "answer", true}, {1100 * ms, "answer", false},
		},
		"one answer is not a while": {
			{0, "refuse", true}, {100 * ms, "answer", true}, {600 * ms, "look", true}, {1100 * ms, "look", true}, {1600 * ms, "look", true},
		},
		"one that is back and goes again stays silent": {
			{0, "refuse", true}, {100 * ms, "answer", true}, {600 * ms, "refuse", true}, {700 * ms, "answer", true}, {1200 * ms, "answer", true}, {1700 * ms, "answer", false},
		},
		"who stood still holds nothing against others": {
			{0, "answer", false}, {500 * ms, "look", false}, {15_000 * ms, "look", false}, {15_500 * ms, "look", false}, {16_000 * ms, "look", false}, {16_500 * ms, "look", true},
		},
		"who stood still does not forget who was silent": {
			{0, "refuse", true}, {15_000 * ms, "look", true},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewFailureDetector(start)
			for _, s := range steps {
				now := start.Add(s.at)
				switch s.what {
				case "answer":
					p = p.Answered(now, true)
				case "stop":
					p = p.Answered(now, false)
				case "refuse":
					p = p.Refused()
				default:
					p = p.Advance(now)
				}
				if p.Silent() != s.want {
					t.Fatalf("after %s at %s: silent is %v, want %v", s.what, s.at, p.Silent(), s.want)
				}
			}
		})
	}
}

func member(id string) Member { return Member{ID: id, Addr: id + ":1"} }

func TestRoute(t *testing.T) {
	var m Map
	nobody := func(string) bool { return false }
	if _, _, known := m.Route(3, nobody); known {
		t.Fatal("an empty map knows a route")
	}
	m.SetMembers([]Member{member("a"), member("b"), member("c")})
	first := Ranked(3, m.Members())[0]
	if to, acting, known := m.Route(3, nobody); !known || !acting || to.ID != first.ID || to.Epoch != 0 {
		t.Fatalf("a slot without an owner goes to %v, want the first in rank, %s", to, first.ID)
	}
	m.Update(3, Owner{ID: "gone", Addr: "gone:1", Epoch: 5})
	if to, acting, _ := m.Route(3, nobody); acting || to.ID != "gone" {
		t.Fatalf("an owner that is not known to be silent was passed over for %v", to)
	}
	if to, acting, _ := m.Route(3, func(id string) bool { return id == "gone" }); !acting || to.ID != first.ID || to.Epoch != 5 {
		t.Fatalf("a silent owner's slot goes to %v, want %s in epoch 5", to, first.ID)
	}
	if to, acting, known := m.Route(3, func(string) bool { return true }); !known || acting || to.ID != "gone" {
		t.Fatalf("when all are silent a slot goes to %v, want the owner", to)
	}
}

func TestEpochsOnlyRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map
		var highest uint64
		for range rapid.IntRange(1, 50).Draw(t, "news") {
			epoch := rapid.Uint64Range(0, 20).Draw(t, "epoch")
			news := m.Update(7, Owner{ID: "a", Addr: "a:1", Epoch: epoch})
			if news != (epoch > highest) {
				t.Fatalf("Learn of epoch %d after %d says %v", epoch, highest, news)
			}
			highest = max(highest, epoch)
			if owner, _ := m.Owner(7); owner.Epoch != highest {
				t.Fatalf("the owner's epoch is %d, want %d", owner.Epoch, highest)
			}
		}
	})
}

// A member that goes changes the first place of its own slots only, and each
// first place is as likely as another.
func TestRanks(t *testing.T) {
	members := []Member{member("scheduler-a"), member("scheduler-b"), member("scheduler-c"), {ID: "scheduler-d", Addr: "d:1", Draining: true}}
	first := make(map[string]int)
	for slot := range Slot(Slots) {
		ranked := Ranked(slot, members)
		if len(ranked) != 3 {
			t.Fatalf("slot %d has %d ranks, want those of the 3 that are not draining", slot, len(ranked))
		}
		first[ranked[0].ID]++
		without := Ranked(slot, []Member{members[0], members[2]})
		if want := ranked[0].ID; want != "scheduler-b" && without[0].ID != want {
			t.Fatalf("slot %d: without b, %s is first instead of %s", slot, without[0].ID, want)
		}
		if ranked[0].ID == "scheduler-b" && without[0].ID != ranked[1].ID {
			t.Fatalf("slot %d: the second in rank does not follow the first", slot)
		}
	}
	for id, n := range first {
		if n < Slots/3-60 || n > Slots/3+60 {
			t.Errorf("%s is first for %d slots, want about %d", id, n, Slots/3)
		}
	}
}
