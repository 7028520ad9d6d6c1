package etcd

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// record is what is known of one slot's key.
type record struct {
	// owner is the last one that was named, even if the key is gone.
	owner ownership.Owner
	// exists tells whether the key is there, under lease.
	exists bool
	lease  clientv3.LeaseID
	// revision of etcd as of which this is known.
	revision int64
}

// named tells whether the key names an owner.
func (r record) named(id string) bool {
	return r.owner.ID == id && r.owner.Epoch == uint64(r.revision)
}

// holding is the epoch in which a Keeper has the slot, or 0, given its lease and
// the epoch in which it had it before. A slot is lost only to another owner: one
// whose key is missing, or is the same as before under a lease that ended,
// stays with its Keeper.
func (r record) holding(id string, lease clientv3.LeaseID, before uint64) uint64 {
	switch {
	case !r.exists:
		return before
	case r.lease == lease:
		return uint64(r.revision)
	case r.named(id) && uint64(r.revision) == before:
		return before
	default:
		return 0
	}
}

// table is what is known of all slots. News may arrive late and more than once,
// by a list, a watch or a transaction; for each slot the latest revision counts.
type table struct {
	// revision is the highest of etcd that was seen.
	revision int64
	slots    [ownership.Slots]record
}

// see notes that etcd is at a revision.
func (t *table) see(revision int64) { t.revision = max(t.revision, revision) }

// put notes that the key of a slot was written at a revision. A nil owner is
// one that could not be read: somebody has the slot, nobody knows who.
func (t *table) put(slot ownership.Slot, owner *member, lease clientv3.LeaseID, revision int64) {
	t.see(revision)
	r := &t.slots[slot]
	if revision <= r.revision {
		return
	}
	r.exists, r.lease, r.revision = true, lease, revision
	if owner != nil {
		r.owner = ownership.Owner{ID: owner.ID, Addr: owner.Addr, Epoch: uint64(revision)}
	}
}

// remove notes that at a revision a slot had no key.
func (t *table) remove(slot ownership.Slot, revision int64) {
	t.see(revision)
	r := &t.slots[slot]
	if revision <= r.revision {
		return
	}
	r.exists, r.lease, r.revision = false, clientv3.NoLease, revision
}

// rewind forgets which keys there are and what revision etcd had, for it has
// another history now. The last owners stay named until others are.
func (t *table) rewind() {
	t.revision = 0
	for i := range t.slots {
		t.slots[i] = record{owner: t.slots[i].owner}
	}
}

// left lists the keys of an owner that are not under its lease, and their
// revisions: an earlier lease or an earlier process of that name left them.
func (t *table) left(id string, lease clientv3.LeaseID) map[ownership.Slot]int64 {
	out := make(map[ownership.Slot]int64)
	for i, r := range t.slots {
		if r.exists && r.lease != lease && r.named(id) {
			out[ownership.Slot(i)] = r.revision
		}
	}
	return out
}

// claimable lists the slots that have no key, and those whose key is still the
// one that was left.
func (t *table) claimable(left map[ownership.Slot]int64) []ownership.Slot {
	var out []ownership.Slot
	for i, r := range t.slots {
		revision, wasLeft := left[ownership.Slot(i)]
		if !r.exists || wasLeft && revision == r.revision {
			out = append(out, ownership.Slot(i))
		}
	}
	return out
}
