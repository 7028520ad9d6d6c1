package ownership

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Slots is the number of slots. It is enough for some 50 owners to get even
// shares.
const Slots = 1024

// Slot is a share of all functions, 0 to Slots-1.
type Slot uint16

// SlotOf is the slot of one shard of a function, 0 or above. A function that is
// not sharded has the shard 0 only. Ids are spread evenly, whatever they look like.
func SlotOf(functionUID string, shard int) Slot {
	// The zero byte ends the id, so that no id and shard are mistaken for
	// another pair.
	key := append(make([]byte, 0, 64), functionUID...)
	key = append(key, 0)
	key = binary.BigEndian.AppendUint64(key, uint64(shard))
	sum := sha256.Sum256(key)
	return Slot(binary.BigEndian.Uint64(sum[:]) % Slots)
}

// Owner is the scheduler that a slot belongs to.
type Owner struct {
	// ID names the scheduler; no two that run have the same.
	ID string
	// Addr is where it serves, host:port.
	Addr string
	// Epoch rises whenever the slot changes hands. It is never 0.
	Epoch uint64
}

// Static is ownership that never changes: every slot has one and the same
// owner. It serves both sides, those who ask for owners and the owner itself.
type Static struct{ owner Owner }

// NewStatic makes a Static. An epoch of 0 becomes 1.
func NewStatic(owner Owner) Static {
	owner.Epoch = max(owner.Epoch, 1)
	return Static{owner}
}

// Route says that everything goes to the one owner.
func (s Static) Route(Slot) (to Owner, acting, known bool) { return s.owner, false, true }

// Changed is never signalled.
func (s Static) Changed() <-chan struct{} { return nil }

// Unconfirmed is never true.
func (s Static) Unconfirmed() (since time.Time, unconfirmed bool) { return time.Time{}, false }

// Epoch says that every slot is owned.
func (s Static) Epoch(Slot) (uint64, bool) { return s.owner.Epoch, true }

const (
	// HandoverDelay is how long a scheduler that was told to stop, and has given its
	// slots away, tells others where to go, unless it is configured otherwise.
	HandoverDelay = 5 * time.Second
	// SeedAfter is how long etcd may take before a scheduler is asked who owns the slots.
	SeedAfter = 2 * time.Second
)
