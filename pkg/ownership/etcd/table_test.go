package etcd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

var (
	memberA = member{ID: "a", Addr: "a:1"}
	memberB = member{ID: "b", Addr: "b:1"}
)

func TestTheLatestNewsOfASlotCounts(t *testing.T) {
	put := func(m member, revision int64) func(*table) {
		return func(t *table) { t.put(7, &m, 1, revision) }
	}
	remove := func(revision int64) func(*table) {
		return func(t *table) { t.remove(7, revision) }
	}
	tests := map[string]struct {
		news   []func(*table)
		owner  string
		epoch  uint64
		exists bool
	}{
		"nothing is known":                        {nil, "", 0, false},
		"it was written":                          {[]func(*table){put(memberA, 5)}, "a", 5, true},
		"it was written again":                    {[]func(*table){put(memberA, 5), put(memberB, 6)}, "b", 6, true},
		"older news come late":                    {[]func(*table){put(memberB, 6), put(memberA, 5)}, "b", 6, true},
		"it was removed":                          {[]func(*table){put(memberA, 5), remove(6)}, "a", 5, false},
		"its removal comes after its next owner":  {[]func(*table){put(memberA, 5), put(memberB, 7), remove(6)}, "b", 7, true},
		"it was removed and made again":           {[]func(*table){put(memberA, 5), remove(6), put(memberB, 7)}, "b", 7, true},
		"an owner comes after it was seen absent": {[]func(*table){remove(6), put(memberA, 5)}, "", 0, false},
		"etcd has another history": {[]func(*table){put(memberA, 50), (*table).rewind, put(memberB, 7)},
			"b", 7, true},
		"etcd has another history, without owners": {[]func(*table){put(memberA, 50), (*table).rewind},
			"a", 50, false},
		"somebody unreadable has it": {[]func(*table){put(memberA, 5), func(t *table) { t.put(7, nil, 2, 6) }},
			"a", 5, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var table table
			for _, n := range tt.news {
				n(&table)
			}
			got := table.slots[7]
			if got.owner.ID != tt.owner || got.owner.Epoch != tt.epoch || got.exists != tt.exists {
				t.Errorf("the slot is %+v, want owner %q, epoch %d, exists %v", got, tt.owner, tt.epoch, tt.exists)
			}
		})
	}
}

func TestWhatIsHeld(t *testing.T) {
	const mine, ended, theirs clientv3.LeaseID = 1, 2, 3
	key := func(m member, lease clientv3.LeaseID, revision int64) record {
		var table table
		table.put(7, &m, lease, revision)
		return table.slots[7]
	}
	unreadable := key(memberA, ended, 5)
	unreadable.revision = 6
	tests := map[string]struct {
		key    record
		before uint64
		want   uint64
	}{
		"a key under its lease":                         {key(memberA, mine, 5), 0, 5},
		"a key under its lease, written again":          {key(memberA, mine, 6), 5, 6},
		"no key, and it never had the slot":             {record{revision: 6}, 0, 0},
		"the key went, and nobody took the slot":        {record{revision: 6}, 5, 5},
		"its key under a lease that ended":              {key(memberA, ended, 5), 5, 5},
		"a key of an earlier process of its name":       {key(memberA, ended, 5), 0, 0},
		"a later process of its name took the slot":     {key(memberA, theirs, 6), 5, 0},
		"somebody else took the slot":                   {key(memberB, theirs, 6), 5, 0},
		"another's key in a history with equal numbers": {key(memberB, theirs, 5), 5, 0},
		"somebody unreadable took the slot":             {unreadable, 5, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.key.holding("a", mine, tt.before); got != tt.want {
				t.Errorf("it holds epoch %d, want %d", got, tt.want)
			}
		})
	}
}

func TestWhatCanBeClaimed(t *testing.T) {
	const mine, ended, theirs clientv3.LeaseID = 1, 2, 3
	var table table
	for slot := range ownership.Slot(ownership.Slots) {
		table.put(slot, &memberB, theirs, 5)
	}
	table.remove(10, 6)
	table.put(11, &memberA, mine, 6)
	table.put(12, &memberA, ended, 6)
	table.put(13, &memberA, ended, 6)
	table.put(14, &memberA, ended, 6)
	table.put(14, nil, theirs, 7)

	left := table.left("a", mine)
	if diff := cmp.Diff(map[ownership.Slot]int64{12: 6, 13: 6}, left); diff != "" {
		t.Errorf("what earlier leases left (-want +got):\n%s", diff)
	}
	table.put(13, &memberA, theirs, 8)
	if diff := cmp.Diff([]ownership.Slot{10, 12}, table.claimable(left)); diff != "" {
		t.Errorf("what can be claimed after slot 13 was taken (-want +got):\n%s", diff)
	}
}

func TestKeysOfSlots(t *testing.T) {
	k := keys("/windlass")
	for slot := range ownership.Slot(ownership.Slots) {
		if got, err := k.parseSlot(k.slot(slot)); err != nil || got != slot {
			t.Fatalf("%s is read as slot %d, %v", k.slot(slot), got, err)
		}
	}
	for _, key := range []string{"/windlass/slots/1024", "/windlass/slots/7", "/windlass/slots/00007", "/windlass/slots/", "/windlass/members/0007", "0007"} {
		if got, err := k.parseSlot(key); err == nil {
			t.Errorf("%s is read as slot %d", key, got)
		}
	}
}
