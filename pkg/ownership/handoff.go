package ownership

// Holding is a slot that a scheduler holds.
type Holding struct {
	Slot Slot
	// Busy says that calls of its functions wait or run: a handoff costs them a moment.
	Busy bool
}

// Handoffs plans which slots an owner hands off next, and to which member: slots that
// rank this member first, at most idle of those without work and busy of those with.
// Other members follow after that. An owner that is draining, or is no member any
// more, is not in Ranked, so it hands off all of its slots. Slots whose owner ranks
// first stay, so each slot moves once after the members have changed.
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

// topRanked is the first of Ranked; false if that is empty.
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
