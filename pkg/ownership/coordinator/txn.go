package coordinator

import "github.com/windlass-dev/windlass/pkg/ownership"

// MaxOps is the maximum number of operations in a transaction; etcd allows 128.
const MaxOps = 120

// Lease names a lease; 0 is none. Its keys are deleted when it ends.
type Lease int64

// Key names the key of a member if Member is not empty, and otherwise the key of a slot.
type Key struct {
	Member string
	Slot   ownership.Slot
}

// Value is the content of a key: a member, or a slot's owner, which is never Draining. An
// unreadable value has an empty ID.
type Value = ownership.Member

// Entry is the state of a key at a revision of the store.
type Entry struct {
	Key   Key
	Value Value
	Lease Lease
	// Revision is when the key was written. For an absent key it is a revision at which the
	// key did not exist.
	Revision int64
	// Absent says that the key does not exist.
	Absent bool
}

// Listing has all keys at a revision.
type Listing struct {
	Revision int64
	Entries  []Entry
}

// Always is the condition that is always met.
const Always int64 = -1

// Op writes a key under a lease.
type Op struct {
	Key Key
	// If is the revision that the key must have; 0 means that it must not exist.
	If    int64
	Value Value
	Lease Lease
}

// Txn writes all of its keys if all conditions are met, and otherwise none.
type Txn struct {
	Ops []Op
	// Handoff says that it writes under the lease of another member.
	Handoff bool
}

// Outcome is how a transaction ended.
type Outcome int

const (
	// Done says that all keys were written, at the result's revision.
	Done Outcome = iota + 1
	// Refused says that no key was written, because a condition was not met.
	Refused
	// NoLease says that no key was written, because a lease does not exist.
	NoLease
)

// Result of a transaction.
type Result struct {
	Outcome Outcome
	// Revision of the store, unless there was no lease.
	Revision int64
	// Found has the present entries of the keys if the transaction was refused.
	Found []Entry
}
