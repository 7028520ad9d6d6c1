// Package coordinator decides which slots a scheduler holds, claims and hands off, from what it
// reads in a store of leased keys. The store says who owns a slot. Rendezvous hashing only says
// who claims a free slot first, and which member slots move to.
//
// Invariants of a Core:
//
//   - A Core creates a key only where none exists. It replaces a key only if the key names
//     this scheduler, if this scheduler owns the slot and hands it off, or if the key has no
//     lease, which no scheduler ever writes. All writes are conditional, so a living owner
//     loses nothing, however old the Core's view is.
//   - A slot is handed off in one step: its key passes to the new owner under the new owner's
//     lease. The key exists at every moment.
//   - A Core holds a slot until a key names another owner. Without news of the store it holds
//     on, claims nothing and hands off nothing.
//   - The slots that a Core holds follow from the keys alone, so a Core that has seen all keys
//     agrees with them.
//
// A Core takes changes of the store and the time, and returns the next transaction to try. It
// reads no clock and does no I/O: package etcd does both for it, as do simulators. A View holds
// the known keys. A Comparison says when they must be listed again, because watches say nothing of
// a store that was restored. A Store is the store itself in memory, with etcd's rules as far as a
// Core can observe them.
package coordinator
