package coordinator

import "github.com/windlass-dev/windlass/pkg/ownership"

// MaxOps is how many operations a transaction has at most; etcd allows for 128.
const MaxOps = 120

// Lease names a lease. Keys under it are gone when it ends. 0 is none.
type Lease int64

// Key names a key: of a member if Member is not empty, else of a slot.
type Key struct {
	Member string
	Slot   ownership.Slot
}

// Value is what a key says: a member, or a slot's owner, which is never
// Draining. A value that could not be read has an empty ID.
type Value = ownership.Member

// Entry is what a key was at a revision of the store.
type Entry struct {
	Key   Key
	Value Value
	Lease Lease
	// Revision is the one at which the key was written. Of a key that does not
	// exist it is one at which it did not.
	Revision int64
	// Absent says that the key does not exist.
	Absent bool
}

// Listing is all there is at a revision.
type Listing struct {
	Revision int64
	Entries  []Entry
}

// Always is the condition that is always met.
const Always int64 = -1

// Op writes a key under a lease.
type Op struct {
	Key Key
	// If is the revision that the key must have; 0 is that it does not exist.
	If    int64
	Value Value
	Lease Lease
}

// Txn writes all of its keys if all of their conditions are met, else none.
type Txn struct {
	Ops []Op
	// Handoff says that it writes under the lease of another member.
	Handoff bool
}

// Outcome is what became of a transaction.
type Outcome int

const (
	// Done says that all keys were written, at the result's revision.
	Done Outcome = iota + 1
	// Refused says that nothing was, because a condition was not met.
	Refused
	// NoLease says that nothing was, because a lease does not exist.
	NoLease
)

// Result of a transaction.
type Result struct {
	Outcome Outcome
	// Revision of the store, unless there was no lease.
	Revision int64
	// Found is what each key is if the transaction was refused.
	Found []Entry
}
