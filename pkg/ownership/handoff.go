package ownership

// Holding is a slot that a scheduler holds.
type Holding struct {
	Slot Slot
	// Busy says that calls of its functions wait or run, so that a handoff delays them for a
	// moment.
	Busy bool
}

// Handoffs plans which slots their owner hands off next, and to whom: slots that Ranked
// assigns to another member, all to the same one, at most idle slots without work and busy
// slots with work. Other members get theirs in later calls. An owner that drains or is no
// longer a member is not in Ranked, so all of its slots move. Slots that are in place stay, so
// each slot moves once, and members with the same view come to rest.
func Handoffs(self string, held []Holding, members []Member, idle, busy int) (to Member, slots []Slot) {
	for _, h := range held {
		left := &idle
		if h.Busy {
			left = &busy
		}
		if *left <= 0 {
			continue
		}
		target, found := topRanked(h.Slot, members)
		if !found || target.ID == self || len(slots) > 0 && target.ID != to.ID {
			continue
		}
		to, slots = target, append(slots, h.Slot)
		*left--
	}
	return to, slots
}

// topRanked is the first of Ranked; false if no member may get the slot.
func topRanked(slot Slot, members []Member) (best Member, found bool) {
	var high uint64
	for _, m := range members {
		if m.Draining {
			continue
		}
		if s := score(slot, m.ID); !found || s > high || s == high && m.ID < best.ID {
			best, high, found = m, s, true
		}
	}
	return best, found
}
