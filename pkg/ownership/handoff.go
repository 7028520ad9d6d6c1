package ownership

// Holding is a slot that somebody has.
type Holding struct {
	Slot Slot
	// Busy says that calls of its functions wait or run: to give it away
	// costs a moment of theirs.
	Busy bool
}

// Handoffs plans what the owner of some slots gives away next, and to whom: slots
// whose first of Ranked is that member, at most idle of those without work and
// busy of those with. To others it gives after that. An owner that is draining,
// or no member any more, is not in Ranked, so all of its slots go. Those that
// are in their place stay, so members who know each other come to rest: each
// slot moves once.
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

// topRanked is the first of Ranked; false if there is nobody.
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
