package ownership

import "time"

const (
	// ClaimDelayStep is how long each member waits for the one ranked before it. A claim takes
	// milliseconds, so within this time the others learn of it, even if etcd is slow.
	ClaimDelayStep = 200 * time.Millisecond
	// LastOwnerLead is how long all others wait for the last known owner. If that lives and
	// only its lease has ended, it needs a new lease before it can claim, on a machine that
	// may be slow.
	LastOwnerLead = 2 * time.Second
)

// ClaimDelay returns how long a member waits before it claims a slot that has lost its owner,
// and whether it may claim it at all. last is the last known owner, if any. holds says that
// the member itself is the owner and still serves the slot.
//
// The holder of the slot claims it at once, so that a living owner loses nothing when its key
// does; the others cannot tell whether it lives. They claim in the order of Ranked: the first
// waits no longer, and each next one claims if those before it do not.
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

// rankOf is the position of a member in Ranked; false if it is not in it.
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
