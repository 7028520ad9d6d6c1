package coordinator

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// holdings are the held slots and those without an owner. They follow from the slots' keys.
type holdings struct {
	// epochs are the epochs of the held slots, and 0 for others; n counts the held ones.
	epochs [ownership.Slots]uint64
	n      int
	// vacant is since when a slot is known to have no valid key; zero if it has one.
	vacant [ownership.Slots]time.Time
}

// Epoch is the epoch in which the scheduler holds a slot; 0 if it does not.
func (h *holdings) Epoch(slot ownership.Slot) uint64 { return h.epochs[slot] }

// Holds is the number of held slots.
func (h *holdings) Holds() int { return h.n }

// review updates the holdings from a slot's key, and reports whether the slot was gained.
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

// holding is the epoch in which a scheduler holds a slot, given the key and the epoch before;
// 0 if it does not hold it. A scheduler loses a slot only to another owner. It keeps a slot
// whose key is missing, was written by hand, or is unchanged under a lease that has ended.
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

func (h *holdings) releaseAll() { h.epochs, h.n = [ownership.Slots]uint64{}, 0 }

// hasVacant reports whether a slot has no owner.
func (h *holdings) hasVacant() bool {
	for i := range h.vacant {
		if !h.vacant[i].IsZero() && h.epochs[i] == 0 {
			return true
		}
	}
	return false
}

// list returns the held slots, and whether they carry work.
func (h *holdings) list(busy func(ownership.Slot) bool) []ownership.Holding {
	held := make([]ownership.Holding, 0, h.n)
	for i, epoch := range h.epochs {
		if slot := ownership.Slot(i); epoch != 0 {
			held = append(held, ownership.Holding{Slot: slot, Busy: busy(slot)})
		}
	}
	return held
}
