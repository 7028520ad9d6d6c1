package ownership

import "slices"

// Map is what is known of all slots and of all members. It is not safe for
// concurrent use. The zero Map knows nothing.
type Map struct {
	owners [Slots]Owner
	// rejected is the highest epoch of each slot that was replaced by a lower one.
	rejected [Slots]uint64
	members  []Member
}

// Clone is a copy.
func (m *Map) Clone() *Map {
	c := *m
	c.members = slices.Clone(m.members)
	return &c
}

// Owner is the last known owner of a slot; false if none is known.
func (m *Map) Owner(slot Slot) (Owner, bool) {
	if slot >= Slots {
		return Owner{}, false
	}
	return m.owners[slot], m.owners[slot].Epoch != 0
}

// Members are the known members. They must not be changed.
func (m *Map) Members() []Member { return m.members }

// Merge is Update for an owner that another scheduler or gateway named. An epoch that a
// Reset has rejected is not accepted again: programs that do not know of the Reset yet
// would otherwise send it to each other for ever.
func (m *Map) Merge(slot Slot, owner Owner) bool {
	return slot < Slots && owner.Epoch > m.rejected[slot] && m.Update(slot, owner)
}

// Update sets the owner of a slot if its epoch is higher than the known one, and
// reports whether it did.
func (m *Map) Update(slot Slot, owner Owner) bool {
	if slot >= Slots || owner.ID == "" || owner.Addr == "" || owner.Epoch <= m.owners[slot].Epoch {
		return false
	}
	m.owners[slot] = owner
	return true
}

// Reset sets the owner of a slot, whatever its epoch: etcd has another history now.
func (m *Map) Reset(slot Slot, owner Owner) {
	if before := m.owners[slot].Epoch; before > owner.Epoch {
		m.rejected[slot] = max(m.rejected[slot], before)
	}
	m.owners[slot] = owner
}

// LastEpoch is the highest epoch of all slots; 0 if no owner is known.
func (m *Map) LastEpoch() uint64 {
	var last uint64
	for i := range m.owners {
		last = max(last, m.owners[i].Epoch)
	}
	return last
}

// SetMembers replaces the members. A member that is gone stays the last known
// owner of its slots.
func (m *Map) SetMembers(members []Member) { m.members = slices.Clone(members) }

// Route is the scheduler that a slot's tickets and pulls go to: its owner or, as long
// as that is silent, the standby, which will be its owner next. Acting says that it is
// the standby, whose Owner has the epoch of the last known owner. It is false if no
// scheduler is known. A wrong route does no harm: an invocation is claimed once,
// wherever its tickets are.
func (m *Map) Route(slot Slot, silent func(id string) bool) (to Owner, acting, known bool) {
	owner, known := m.Owner(slot)
	if known && !silent(owner.ID) {
		return owner, false, true
	}
	for _, member := range Ranked(slot, m.members) {
		if member.ID != owner.ID && !silent(member.ID) {
			return Owner{ID: member.ID, Addr: member.Addr, Epoch: owner.Epoch}, true, true
		}
	}
	// Nobody answers: the owner is as good a guess as any.
	return owner, false, known
}
