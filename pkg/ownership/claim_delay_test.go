package ownership

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func members(ids ...string) []Member {
	var out []Member
	for _, id := range ids {
		out = append(out, Member{ID: id, Addr: id + ":1"})
	}
	return out
}

func TestTurns(t *testing.T) {
	const slot = 7
	all := members("a", "b", "c")
	ranked := Ranked(slot, all)
	first, third := ranked[0].ID, ranked[2].ID
	draining := slices.Clone(all)
	for i := range draining {
		draining[i].Draining = draining[i].ID == first
	}
	tests := map[string]struct {
		self    string
		last    string
		holds   bool
		members []Member
		wait    time.Duration
		may     bool
	}{
		"the first, and nobody ever had it":        {first, "", false, all, 0, true},
		"the third, and nobody ever had it":        {third, "", false, all, 2 * ClaimDelayStep, true},
		"the first in front of one that is gone":   {third, "x", false, draining, LastOwnerLead + ClaimDelayStep, true},
		"the first, after another":                 {first, third, false, all, LastOwnerLead, true},
		"the third, after another":                 {third, first, false, all, LastOwnerLead + 2*ClaimDelayStep, true},
		"the third, which had it and forgot":       {third, third, false, all, 2 * ClaimDelayStep, true},
		"the third, which holds it":                {third, third, true, all, 0, true},
		"one that is draining":                     {first, "", false, draining, 0, false},
		"one that is no member":                    {"x", "", false, all, 0, false},
		"one that is no member any more and holds": {"x", "x", true, all, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			wait, may := ClaimDelay(slot, tt.self, Owner{ID: tt.last}, tt.holds, tt.members)
			if wait != tt.wait || may != tt.may {
				t.Errorf("it waits %v, %v, want %v, %v", wait, may, tt.wait, tt.may)
			}
		})
	}
}

func drawMembers(t *rapid.T) []Member {
	ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-e][0-9]?`), 0, 8, rapid.ID).Draw(t, "ids")
	list := members(ids...)
	for i := range list {
		list[i].Draining = rapid.IntRange(0, 3).Draw(t, "draining") == 0
	}
	return list
}

// No two members ever have the same turn, so at most one tries at a time.
func TestTurnsFollowTheRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawMembers(t)
		slot := Slot(rapid.IntRange(0, Slots-1).Draw(t, "slot"))
		ranked := Ranked(slot, list)
		for _, m := range list {
			want := slices.Index(ranked, m)
			wait, may := ClaimDelay(slot, m.ID, Owner{}, false, list)
			if may != (want >= 0) || may && wait != time.Duration(want)*ClaimDelayStep {
				t.Fatalf("%s waits %v, %v, but is at %d of %v", m.ID, wait, may, want, ranked)
			}
		}
		if best, found := topRanked(slot, list); found != (len(ranked) > 0) || found && best != ranked[0] {
			t.Fatalf("the first is %v, %v, want that of %v", best, found, ranked)
		}
	})
}

func TestHandoffsMoveEachSlotOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawMembers(t)
		owner := make(map[Slot]string)
		held := make(map[string][]Holding)
		for slot := range Slot(64) {
			id := rapid.SampledFrom([]string{"a", "b", "c", "x"}).Draw(t, "owner")
			owner[slot] = id
			held[id] = append(held[id], Holding{slot, rapid.Bool().Draw(t, "busy")})
		}
		idle, busy := rapid.IntRange(1, 40).Draw(t, "idle"), rapid.IntRange(1, 5).Draw(t, "busy budget")
		moved := make(map[Slot]bool)
		for more := true; more; {
			more = false
			for _, self := range []string{"a", "b", "c", "x"} {
				to, slots := Handoffs(self, held[self], list, idle, busy)
				more = more || len(slots) > 0
				spent := map[bool]int{}
				for _, slot := range slots {
					i := slices.IndexFunc(held[self], func(h Holding) bool { return h.Slot == slot })
					switch {
					case i < 0:
						t.Fatalf("%s gives slot %d, which it does not hold", self, slot)
					case !slices.Contains(list, to) || to.Draining || to.ID == self:
						t.Fatalf("%s gives slot %d to %+v", self, slot, to)
					case moved[slot]:
						t.Fatalf("slot %d moves twice", slot)
					}
					moved[slot] = true
					spent[held[self][i].Busy]++
					owner[slot] = to.ID
					held[self] = slices.Delete(held[self], i, i+1)
				}
				if spent[false] > idle || spent[true] > busy {
					t.Fatalf("it gives %d idle and %d busy slots, want at most %d and %d", spent[false], spent[true], idle, busy)
				}
			}
		}
		for slot, id := range owner {
			if ranked := Ranked(slot, list); len(ranked) > 0 && ranked[0].ID != id && id <= "c" {
				t.Fatalf("slot %d rests at %s, want %s", slot, id, ranked[0].ID)
			}
		}
	})
}
