package ownership

import (
	"fmt"
	"testing"
)

// Programs of two versions must agree on these, and so must the keys that a
// version before wrote.
func TestTheSlotOfAFunctionNeverChanges(t *testing.T) {
	tests := []struct {
		uid   string
		shard int
		want  Slot
	}{
		{"", 0, 649},
		{"6f1f4d2e-3f0b-4a37-9d0c-2f6f0d7d7b11", 0, 282},
		{"6f1f4d2e-3f0b-4a37-9d0c-2f6f0d7d7b11", 1, 836},
		{"6f1f4d2e-3f0b-4a37-9d0c-2f6f0d7d7b12", 0, 246},
		{"default/hello", 0, 756},
		{"default/hello", 1023, 815},
		{"a uid that is longer than the 64 bytes which usually are enough for one", 0, 537},
	}
	for _, tt := range tests {
		if got := SlotOf(tt.uid, tt.shard); got != tt.want {
			t.Errorf("SlotOf(%q, %d) = %d, want %d", tt.uid, tt.shard, got, tt.want)
		}
	}
}

func TestFunctionsAreSpreadEvenly(t *testing.T) {
	const each = 100
	tests := map[string]func(i int) Slot{
		"ids that differ in a few digits": func(i int) Slot { return SlotOf(fmt.Sprintf("default/function-%d", i), 0) },
		"shards of one function":          func(i int) Slot { return SlotOf("hot", i) },
	}
	for name, slotOf := range tests {
		t.Run(name, func(t *testing.T) {
			var count [Slots]int
			for i := range each * Slots {
				count[slotOf(i)]++
			}
			// Chi-squared of an even spread: Slots-1 on average, with a
			// standard deviation of 45. The ids are fixed, so this cannot
			// fail by chance.
			var chi float64
			for _, n := range count {
				chi += float64((n-each)*(n-each)) / each
			}
			if chi > Slots+5*45 {
				t.Errorf("chi-squared is %.0f, want about %d", chi, Slots)
			}
		})
	}
}

func TestAStaticOwnerHasEverySlot(t *testing.T) {
	static := NewStatic(Owner{ID: "one", Addr: "127.0.0.1:7000"})
	for _, slot := range []Slot{0, 1, Slots - 1} {
		owner, _, ok := static.Route(slot)
		if want := (Owner{ID: "one", Addr: "127.0.0.1:7000", Epoch: 1}); !ok || owner != want {
			t.Errorf("Route(%d) = %v, %v, want %v", slot, owner, ok, want)
		}
		if epoch, ok := static.Epoch(slot); !ok || epoch != owner.Epoch {
			t.Errorf("Epoch(%d) = %d, %v, want the owner's, %d", slot, epoch, ok, owner.Epoch)
		}
	}
}

func BenchmarkSlotOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		SlotOf("6f1f4d2e-3f0b-4a37-9d0c-2f6f0d7d7b11", 0)
	}
}

// Those who do not know yet that etcd was restored must not teach it to those who do.
func TestAnEpochThatEtcdHasRejectedIsNotMergedAgain(t *testing.T) {
	old := Owner{ID: "a", Addr: "a:1", Epoch: 90}
	now := Owner{ID: "b", Addr: "b:1", Epoch: 12}
	var m Map
	m.Update(3, old)
	m.Reset(3, now)
	if m.Merge(3, old) || m.Merge(3, Owner{ID: "c", Addr: "c:1", Epoch: 80}) {
		t.Error("an owner of a history that is over is believed")
	}
	if m.Merge(4, old) != true || m.Merge(Slots, old) {
		t.Error("another slot's owner must be believed, and none of a slot that does not exist")
	}
	if next := (Owner{ID: "c", Addr: "c:1", Epoch: 13}); !m.Update(3, next) {
		t.Error("what etcd itself says next is not taken")
	}
	if later := (Owner{ID: "d", Addr: "d:1", Epoch: 91}); !m.Merge(3, later) {
		t.Error("a later owner is not believed")
	}
}

func TestACloneOfAMapIsItsOwn(t *testing.T) {
	var m Map
	if last := m.LastEpoch(); last != 0 {
		t.Errorf("the last epoch of an empty map is %d", last)
	}
	m.Update(3, Owner{ID: "a", Addr: "a:1", Epoch: 7})
	m.SetMembers([]Member{{ID: "a", Addr: "a:1"}})
	c := m.Clone()
	c.Update(3, Owner{ID: "b", Addr: "b:1", Epoch: 9})
	c.Members()[0].ID = "b"
	if owner, known := m.Owner(3); !known || owner.ID != "a" || m.LastEpoch() != 7 || c.LastEpoch() != 9 || m.Members()[0].ID != "a" {
		t.Errorf("slot 3 is of %+v, the last epochs are %d and %d, and the members %+v", owner, m.LastEpoch(), c.LastEpoch(), m.Members())
	}
	if owner, known := m.Owner(Slots); known {
		t.Errorf("a slot that does not exist is of %+v", owner)
	}
}
