package ownership

import "slices"

// Map is a view of all slots and members. It is not safe for concurrent use. The zero Map is
// empty.
type Map struct {
	owners [Slots]Owner
	// rejected is the highest epoch of each slot that Reset has replaced by a lower one.
	rejected [Slots]uint64
	members  []Member
}

// Clone returns a copy.
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

// Members returns the known members. Callers must not change them.
func (m *Map) Members() []Member { return m.members }

// Merge is Update for second-hand information. It ignores epochs that Reset has rejected:
// schedulers that have not seen the new history yet would otherwise pass the old owner on to
// each other forever.
func (m *Map) Merge(slot Slot, owner Owner) bool {
	return slot < Slots && owner.Epoch > m.rejected[slot] && m.Update(slot, owner)
}

// Update records a named owner and reports whether that changes the map: of two owners, the
// one with the higher epoch counts.
func (m *Map) Update(slot Slot, owner Owner) bool {
	if slot >= Slots || owner.ID == "" || owner.Addr == "" || owner.Epoch <= m.owners[slot].Epoch {
		return false
	}
	m.owners[slot] = owner
	return true
}

// Reset records an owner whatever its epoch, because the store now has another history.
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

// SetMembers replaces the members. A member that has left stays the last known owner of its
// slots.
func (m *Map) SetMembers(members []Member) { m.members = slices.Clone(members) }

// Route returns the scheduler that a slot's tickets and pulls go to: its owner or, while that
// is silent, its standby, the member that will own the slot next. acting says that it is the
// standby; to then has the epoch of the last known owner. known is false if no scheduler is
// left. If only the caller considers an owner silent, that does no harm: each invocation is
// claimed once, wherever its tickets are.
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
	// No member answers, so the owner is as good a guess as any.
	return owner, false, known
}
