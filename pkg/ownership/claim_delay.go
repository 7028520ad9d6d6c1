package ownership

import "time"

const (
	// ClaimDelayStep is how much later each further member of Ranked claims. A claim
	// takes some milliseconds, so it is the time in which others see it, with room for
	// an etcd that is slow.
	ClaimDelayStep = 200 * time.Millisecond
	// LastOwnerLead is how much later all others claim than the last known owner. If it
	// lives and only its lease has ended, it needs another lease before it can claim, on
	// a machine that may be slow.
	LastOwnerLead = 2 * time.Second
)

// ClaimDelay is how long a member waits before it claims a slot that has had no owner
// for that long, and whether it may claim it at all. Last is the last known
// owner, if any, and holds says that it is the member itself, which still serves
// the slot.
//
// Whoever holds the slot claims it at once, so that an owner that lives loses
// nothing when its key does; the others cannot tell whether it does. Among them
// the order is that of Ranked: the first waits no longer, and the next steps in
// if it does not come.
func ClaimDelay(slot Slot, self string, last Owner, holds bool, members []Member) (wait time.Duration, may bool) {
	rank, may := rankOf(slot, self, members)
	switch {
	case !may || holds:
		return 0, may
	case last.ID != "" && last.ID != self:
		wait = LastOwnerLead
	}
	return wait + time.Duration(rank)*ClaimDelayStep, true
}

// rankOf is the place of a member in Ranked; false if it is not in it.
func rankOf(slot Slot, id string, members []Member) (rank int, in bool) {
	own := score(slot, id)
	for _, m := range members {
		switch {
		case m.Draining:
		case m.ID == id:
			in = true
		default:
			if s := score(slot, m.ID); s > own || s == own && m.ID < id {
				rank++
			}
		}
	}
	return rank, in
}
