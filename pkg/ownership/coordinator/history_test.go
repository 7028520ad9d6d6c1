package coordinator

import (
	"testing"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// An etcd that was restored may have written a key at the very revision at which it
// was written before, by somebody else.
func TestAKeyThatIsAnotherOneAtTheSameRevisionIsOfAnotherHistory(t *testing.T) {
	entry := func(id string, lease Lease) Entry {
		return Entry{Key: Key{Slot: 7}, Value: Value{ID: id, Addr: id}, Lease: lease, Revision: 8}
	}
	var v View
	v.Listed(Listing{Revision: 8, Entries: []Entry{entry("a", 1)}})
	if v.Listed(Listing{Revision: 9, Entries: []Entry{entry("a", 1)}}) {
		t.Error("the same key is taken for another history")
	}
	if !v.Listed(Listing{Revision: 9, Entries: []Entry{entry("b", 2)}}) {
		t.Error("another owner at the same revision is not noticed")
	}
	if owner, current := v.Owner(ownership.Slot(7)); !current || owner.ID != "b" {
		t.Errorf("the owner is %+v, current %v", owner, current)
	}
}

func TestAListingThatLacksAKeyOfItsOwnRevisionIsOfAnotherHistory(t *testing.T) {
	var v View
	v.Listed(Listing{Revision: 8})
	v.Apply(put("a", 9))
	other := Entry{Key: Key{Slot: 8}, Lease: 1, Revision: 9}
	if !v.Listed(Listing{Revision: 9, Entries: []Entry{other}}) {
		t.Error("the other history is not noticed")
	}
	if owner, current := v.Owner(7); current || owner.ID != "a" {
		t.Errorf("the owner is %+v, current %v, want a as the last one", owner, current)
	}
}
