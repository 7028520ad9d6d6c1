package ownership

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Slots is the number of slots: enough for even shares among some 50 owners.
const Slots = 1024

// Slot is one part of all functions, 0 to Slots-1.
type Slot uint16

// SlotOf is the slot of one shard of a function, 0 or above. A function without shards has
// only shard 0. Ids are spread evenly, whatever they look like.
func SlotOf(functionUID string, shard int) Slot {
	// A zero byte ends the id, so that different pairs of id and shard have different keys.
	key := append(make([]byte, 0, 64), functionUID...)
	key = append(key, 0)
	key = binary.BigEndian.AppendUint64(key, uint64(shard))
	sum := sha256.Sum256(key)
	return Slot(binary.BigEndian.Uint64(sum[:]) % Slots)
}

// Owner is the scheduler that owns a slot.
type Owner struct {
	// ID names the scheduler; no two running ones have the same.
	ID string
	// Addr is its address, host:port.
	Addr string
	// Epoch rises with every change of owner. It is never 0.
	Epoch uint64
}

// Static is an ownership that never changes: one scheduler owns every slot. It serves readers
// of ownership and the owner itself.
type Static struct{ owner Owner }

// NewStatic makes a Static. An epoch of 0 becomes 1.
func NewStatic(owner Owner) Static {
	owner.Epoch = max(owner.Epoch, 1)
	return Static{owner}
}

// Route returns the one owner.
func (s Static) Route(Slot) (to Owner, acting, known bool) { return s.owner, false, true }

// Changed is never signalled.
func (s Static) Changed() <-chan struct{} { return nil }

// Unconfirmed is always false.
func (s Static) Unconfirmed() (since time.Time, unconfirmed bool) { return time.Time{}, false }

// Epoch is the owner's epoch for every slot.
func (s Static) Epoch(Slot) (uint64, bool) { return s.owner.Epoch, true }

const (
	// HandoverDelay is the default time for which a stopping scheduler, after it has handed
	// off its slots, still redirects gateways and agents.
	HandoverDelay = 5 * time.Second
	// SeedAfter is how long etcd may take before a program asks a scheduler who owns the
	// slots.
	SeedAfter = 2 * time.Second
)
