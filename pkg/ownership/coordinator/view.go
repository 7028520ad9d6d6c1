package coordinator

import (
	"cmp"
	"slices"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// View is the known content of the store. Changes may arrive late and more than once, by a
// listing, a watch or a transaction; for each key the latest revision counts. The zero View is
// empty. It is not safe for concurrent use.
type View struct {
	revision int64
	listed   int64 // revision of the last listing
	slots    [ownership.Slots]record
	// members include deleted ones until the next listing, so that an older change of one is
	// recognised as such.
	members map[string]Entry
}

// record is the known state of one slot's key.
type record struct {
	// owner is the last owner that the key named, even if the key is deleted.
	owner ownership.Owner
	// exists says that the key exists, under lease.
	exists bool
	lease  Lease
	// revision is the revision of the store at which this was known.
	revision int64
}

// names reports whether the key exists and names an owner.
func (r *record) names(id string) bool {
	return r.exists && r.owner.ID == id && r.owner.Epoch == uint64(r.revision)
}

// condition is the condition of a transaction that expects the key in its known state.
func (r *record) condition() int64 {
	if !r.exists {
		return 0
	}
	return r.revision
}

// Revision is the highest known revision of the store.
func (v *View) Revision() int64 { return v.revision }

// Listed applies a listing. It returns true if the store has another history than the known
// one, as after a restore or a wipe. The listing then replaces the known content; only last
// owners stay until others are named.
func (v *View) Listed(l Listing) (rewound bool) {
	if rewound = v.contradicts(l); rewound {
		v.revision, v.listed = 0, 0
		for i := range v.slots {
			v.slots[i] = record{owner: v.slots[i].owner}
		}
		v.members = nil
	}
	members := make(map[string]bool)
	for _, e := range l.Entries {
		if e.Key.Member != "" {
			members[e.Key.Member] = true
		}
		v.Apply(e)
	}
	for slot, exists := range l.slots() {
		if !exists {
			v.Apply(Entry{Key: Key{Slot: ownership.Slot(slot)}, Revision: l.Revision, Absent: true})
		}
	}
	for id, e := range v.members {
		if !members[id] && e.Revision <= l.Revision {
			delete(v.members, id)
		}
	}
	v.revision = max(v.revision, l.Revision)
	v.listed = l.Revision
	return rewound
}

// slots reports for each slot whether the listing has its key.
func (l Listing) slots() (exist [ownership.Slots]bool) {
	for _, e := range l.Entries {
		if e.Key.Member == "" {
			exist[e.Key.Slot] = true
		}
	}
	return exist
}

// contradicts reports whether a listing cannot follow the known content: it has an earlier
// revision, or lacks a key that was written at its revision, or a key was written later than
// the listing says, or differently at the same revision.
func (v *View) contradicts(l Listing) bool {
	if l.Revision < v.revision {
		return true
	}
	for _, e := range l.Entries {
		if e.Key.Member == "" && v.slots[e.Key.Slot].contradicts(e) {
			return true
		}
		if known := v.members[e.Key.Member]; e.Key.Member != "" &&
			(e.Revision < known.Revision || e.Revision == known.Revision && e != known) {
			return true
		}
	}
	for slot, exists := range l.slots() {
		if r := &v.slots[slot]; !exists && r.exists && r.revision == l.Revision {
			return true
		}
	}
	return false
}

// contradicts reports whether an existing entry belongs to another history.
func (r *record) contradicts(e Entry) bool {
	if e.Revision != r.revision {
		return e.Revision < r.revision
	}
	return !r.exists || r.lease != e.Lease || e.Value.ID != "" && !r.names(e.Value.ID)
}

// Apply applies a change of one key, and reports whether it is new.
func (v *View) Apply(e Entry) bool {
	v.revision = max(v.revision, e.Revision)
	if e.Key.Member != "" {
		return v.applyMember(e)
	}
	r := &v.slots[e.Key.Slot]
	if e.Revision <= r.revision {
		return false
	}
	r.exists, r.lease, r.revision = !e.Absent, e.Lease, e.Revision
	if !e.Absent && e.Value.ID != "" {
		r.owner = ownership.Owner{ID: e.Value.ID, Addr: e.Value.Addr, Epoch: uint64(e.Revision)}
	}
	return true
}

func (v *View) applyMember(e Entry) bool {
	if e.Revision <= max(v.members[e.Key.Member].Revision, v.listed) {
		return false
	}
	if v.members == nil {
		v.members = make(map[string]Entry)
	}
	v.members[e.Key.Member] = e
	return true
}

// Owner is the last owner that a slot's key named, even if the key is deleted; current says
// that it still does.
func (v *View) Owner(slot ownership.Slot) (owner ownership.Owner, current bool) {
	r := &v.slots[slot]
	return r.owner, r.names(r.owner.ID)
}

// Members returns the present members by id.
func (v *View) Members() []ownership.Member {
	var members []ownership.Member
	for id, e := range v.members {
		// A key without a lease was written by hand, or is unreadable.
		if !e.Absent && e.Lease != 0 && e.Value.ID == id {
			members = append(members, e.Value)
		}
	}
	slices.SortFunc(members, func(a, b ownership.Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}
