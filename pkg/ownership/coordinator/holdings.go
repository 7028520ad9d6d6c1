package coordinator

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// holdings are the slots that are held, and those that have no owner. They follow from
// the slots' keys.
type holdings struct {
	// epochs are those of the slots that are held, else 0; n counts them.
	epochs [ownership.Slots]uint64
	n      int
	// vacant is since when a slot is known to have no key, or one that counts
	// for nothing; zero if it has one.
	vacant [ownership.Slots]time.Time
}

// Epoch is the epoch in which a slot is held; 0 if it is not.
func (h *holdings) Epoch(slot ownership.Slot) uint64 { return h.epochs[slot] }

// Holds is how many slots are held.
func (h *holdings) Holds() int { return h.n }

// review brings what is held in line with a slot's key, and tells whether the slot is
// held from now on and was not before.
func (h *holdings) review(now time.Time, slot ownership.Slot, r *record, self string, lease Lease) (gained bool) {
	switch {
	case r.exists && r.lease != 0:
		h.vacant[slot] = time.Time{}
	case h.vacant[slot].IsZero():
		h.vacant[slot] = now
	}
	before := h.epochs[slot]
	after := r.holding(before, self, lease)
	h.epochs[slot] = after
	switch {
	case before == 0 && after != 0:
		h.n++
		return true
	case before != 0 && after == 0:
		h.n--
	}
	return false
}

// holding is the epoch in which a scheduler holds a slot, given its key and the epoch
// before. A slot is lost only to another owner: one whose key is missing, or was
// written by hand, or is the same as before under a lease that ended, stays.
func (r *record) holding(before uint64, self string, lease Lease) uint64 {
	mine := r.names(self)
	switch {
	case !r.exists || r.lease == 0:
		return before
	case r.lease == lease && mine:
		return uint64(r.revision)
	case r.lease == lease, mine && uint64(r.revision) == before:
		return before
	default:
		return 0
	}
}

// releaseAll releases all slots.
func (h *holdings) releaseAll() { h.epochs, h.n = [ownership.Slots]uint64{}, 0 }

// hasVacant reports whether some slot has no owner, here or elsewhere.
func (h *holdings) hasVacant() bool {
	for i := range h.vacant {
		if !h.vacant[i].IsZero() && h.epochs[i] == 0 {
			return true
		}
	}
	return false
}

// list is what is held, and whether it carries work.
func (h *holdings) list(busy func(ownership.Slot) bool) []ownership.Holding {
	held := make([]ownership.Holding, 0, h.n)
	for i, epoch := range h.epochs {
		if slot := ownership.Slot(i); epoch != 0 {
			held = append(held, ownership.Holding{Slot: slot, Busy: busy(slot)})
		}
	}
	return held
}
