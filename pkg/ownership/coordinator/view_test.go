package coordinator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

func put(id string, revision int64) Entry {
	e := Entry{Key: Key{Slot: 7}, Lease: 1, Revision: revision}
	if id != "" {
		e.Value = Value{ID: id, Addr: id + ":1"}
	}
	return e
}

func gone(revision int64) Entry { return Entry{Key: Key{Slot: 7}, Revision: revision, Absent: true} }

func TestTheLatestNewsOfASlotCount(t *testing.T) {
	tests := map[string]struct {
		news    []Entry
		owner   string
		epoch   uint64
		current bool
	}{
		"nothing is known":                        {nil, "", 0, false},
		"it was written":                          {[]Entry{put("a", 5)}, "a", 5, true},
		"it was written again":                    {[]Entry{put("a", 5), put("b", 6)}, "b", 6, true},
		"older news come late":                    {[]Entry{put("b", 6), put("a", 5)}, "b", 6, true},
		"it was removed":                          {[]Entry{put("a", 5), gone(6)}, "a", 5, false},
		"its removal comes after its next owner":  {[]Entry{put("a", 5), put("b", 7), gone(6)}, "b", 7, true},
		"it was removed and made again":           {[]Entry{put("a", 5), gone(6), put("b", 7)}, "b", 7, true},
		"an owner comes after it was seen absent": {[]Entry{gone(6), put("a", 5)}, "", 0, false},
		"somebody unreadable has it":              {[]Entry{put("a", 5), put("", 6)}, "a", 5, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var view View
			for _, e := range tt.news {
				view.Apply(e)
			}
			owner, current := view.Owner(7)
			if owner.ID != tt.owner || owner.Epoch != tt.epoch || current != tt.current {
				t.Errorf("the owner is %+v, %v, want %q, %d, %v", owner, current, tt.owner, tt.epoch, tt.current)
			}
		})
	}
}

func TestAListingOfAnotherHistoryReplacesAll(t *testing.T) {
	tests := map[string]struct {
		listing Listing
		rewound bool
		owner   ownership.Owner
		current bool
	}{
		"the same":                           {Listing{9, []Entry{put("a", 5)}}, false, ownership.Owner{ID: "a", Addr: "a:1", Epoch: 5}, true},
		"a later one":                        {Listing{12, []Entry{put("b", 11)}}, false, ownership.Owner{ID: "b", Addr: "b:1", Epoch: 11}, true},
		"a later one without the key":        {Listing{12, nil}, false, ownership.Owner{ID: "a", Addr: "a:1", Epoch: 5}, false},
		"of an earlier revision":             {Listing{8, []Entry{put("b", 2)}}, true, ownership.Owner{ID: "b", Addr: "b:1", Epoch: 2}, true},
		"of an earlier one without the key":  {Listing{8, nil}, true, ownership.Owner{ID: "a", Addr: "a:1", Epoch: 5}, false},
		"later, but the key was written ere": {Listing{50, []Entry{put("b", 2)}}, true, ownership.Owner{ID: "b", Addr: "b:1", Epoch: 2}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var view View
			view.Listed(Listing{9, []Entry{put("a", 5)}})
			if rewound := view.Listed(tt.listing); rewound != tt.rewound {
				t.Errorf("another history: %v, want %v", rewound, tt.rewound)
			}
			if owner, current := view.Owner(7); owner != tt.owner || current != tt.current {
				t.Errorf("the owner is %+v, %v, want %+v, %v", owner, current, tt.owner, tt.current)
			}
		})
	}
}

func TestMembersAreThoseWithALease(t *testing.T) {
	member := func(id, says string, lease Lease, revision int64) Entry {
		return Entry{Key: Key{Member: id}, Value: Value{ID: says, Addr: says + ":1"}, Lease: lease, Revision: revision}
	}
	var view View
	view.Listed(Listing{9, []Entry{member("b", "b", 1, 3), member("a", "a", 2, 4), member("c", "c", 0, 5), member("d", "x", 3, 6)}})
	want := []ownership.Member{{ID: "a", Addr: "a:1"}, {ID: "b", Addr: "b:1"}}
	if diff := cmp.Diff(want, view.Members()); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	// A watch that lags behind the listing tells of one that had gone by then.
	view.Listed(Listing{20, []Entry{member("a", "a", 2, 4)}})
	view.Apply(member("b", "b", 1, 12))
	view.Apply(member("e", "e", 4, 21))
	want = []ownership.Member{{ID: "a", Addr: "a:1"}, {ID: "e", Addr: "e:1"}}
	if diff := cmp.Diff(want, view.Members()); diff != "" {
		t.Errorf("members after a later listing (-want +got):\n%s", diff)
	}
}

func TestTheStoreAnswersAsEtcdDoes(t *testing.T) {
	w := newHarness(t)
	s := w.store
	lease := s.Grant(w.now, ttl)
	op := func(slot ownership.Slot, condition int64, lease Lease) Op {
		return Op{Key: Key{Slot: slot}, If: condition, Value: Value{ID: "a"}, Lease: lease}
	}
	steps := []struct {
		name string
		ops  []Op
		want Result
	}{
		{"two keys that are not there", []Op{op(1, 0, lease), op(2, 0, lease)}, Result{Outcome: Done, Revision: 2}},
		{"one that is there", []Op{op(1, 0, lease), op(3, 0, lease)}, Result{Outcome: Refused, Revision: 2, Found: []Entry{
			{Key: Key{Slot: 1}, Value: Value{ID: "a"}, Lease: lease, Revision: 2}, {Key: Key{Slot: 3}, Revision: 2, Absent: true},
		}}},
		{"one as it is known", []Op{op(1, 2, lease)}, Result{Outcome: Done, Revision: 3}},
		{"one as it was", []Op{op(1, 2, lease)}, Result{Outcome: Refused, Revision: 3, Found: []Entry{
			{Key: Key{Slot: 1}, Value: Value{ID: "a"}, Lease: lease, Revision: 3},
		}}},
		{"a lease that does not exist", []Op{op(1, Always, lease+1)}, Result{Outcome: NoLease}},
		{"a condition first, a lease then", []Op{op(1, 2, lease+1)}, Result{Outcome: Refused, Revision: 3, Found: []Entry{
			{Key: Key{Slot: 1}, Value: Value{ID: "a"}, Lease: lease, Revision: 3},
		}}},
	}
	for _, step := range steps {
		if diff := cmp.Diff(step.want, s.Commit(Txn{Ops: step.ops})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if ended := s.Expire(w.now.Add(ttl - 1)); ended != nil || !s.Renew(w.now.Add(ttl-1), lease) {
		t.Errorf("leases %v ended early", ended)
	}
	if ended := s.Expire(w.now.Add(2 * ttl)); len(ended) != 1 || s.Renew(w.now, lease) {
		t.Errorf("leases %v ended, want the one", ended)
	}
	want := []Entry{{Key: Key{Slot: 1}, Revision: 4, Absent: true}, {Key: Key{Slot: 2}, Revision: 4, Absent: true}}
	if got, err := s.Since(3); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("after revision 3 came %v, %v, want %v", got, err, want)
	}
	s.Compact(3)
	if _, err := s.Since(2); err != ErrCompacted {
		t.Errorf("what came after a revision that was compacted: %v", err)
	}
	if got, err := s.Since(3); err != nil || len(got) != 2 {
		t.Errorf("what was not compacted is %v, %v", got, err)
	}
}
