package coordinator

import (
	"cmp"
	"slices"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// View is what is known of the store. News may arrive late and more than once,
// by a listing, a watch or a transaction; for each key the latest revision
// counts. The zero View knows nothing. It is not safe for concurrent use.
type View struct {
	revision int64
	listed   int64 // revision of the last listing
	slots    [ownership.Slots]record
	// members include those that are gone, until the next listing: later news
	// of them must be told from older.
	members map[string]Entry
}

// record is what is known of one slot's key.
type record struct {
	// owner is the last one that was named, even if the key is gone.
	owner ownership.Owner
	// exists tells whether the key is there, under lease.
	exists bool
	lease  Lease
	// revision of the store as of which this is known.
	revision int64
}

// names tells whether the key is there and names an owner.
func (r *record) names(id string) bool {
	return r.exists && r.owner.ID == id && r.owner.Epoch == uint64(r.revision)
}

// condition is that of a transaction that expects the key as it is known.
func (r *record) condition() int64 {
	if !r.exists {
		return 0
	}
	return r.revision
}

// Revision is the highest of the store that is known.
func (v *View) Revision() int64 { return v.revision }

// Listed takes a listing. It returns true if the store has another history than
// the one that is known, as one that was restored or wiped has: then what it says
// replaces what is known, and only last owners stay named until others are.
func (v *View) Listed(l Listing) (rewound bool) {
	if rewound = v.contradicts(l); rewound {
		v.revision, v.listed = 0, 0
		for i := range v.slots {
			v.slots[i] = record{owner: v.slots[i].owner}
		}
		v.members = nil
	}
	var listed [ownership.Slots]bool
	members := make(map[string]bool)
	for _, e := range l.Entries {
		if e.Key.Member == "" {
			listed[e.Key.Slot] = true
		} else {
			members[e.Key.Member] = true
		}
		v.Apply(e)
	}
	for slot, exists := range listed {
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

// contradicts tells whether a listing cannot follow on what is known: it is of
// an earlier revision, or some key was written later than it says, or written
// otherwise at that revision.
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
	return false
}

// contradicts tells whether an entry, which exists, is of another history.
func (r *record) contradicts(e Entry) bool {
	if e.Revision != r.revision {
		return e.Revision < r.revision
	}
	return !r.exists || r.lease != e.Lease || e.Value.ID != "" && !r.names(e.Value.ID)
}

// Apply applies a change of one key, and reports whether it was new.
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

// Owner is the last owner that a slot's key named, even if the key is gone, and
// whether it still does.
func (v *View) Owner(slot ownership.Slot) (owner ownership.Owner, current bool) {
	r := &v.slots[slot]
	return r.owner, r.names(r.owner.ID)
}

// Members are those who take part, by their ids.
func (v *View) Members() []ownership.Member {
	var members []ownership.Member
	for id, e := range v.members {
		// One without a lease was written by hand, or is not readable.
		if !e.Absent && e.Lease != 0 && e.Value.ID == id {
			members = append(members, e.Value)
		}
	}
	slices.SortFunc(members, func(a, b ownership.Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}
