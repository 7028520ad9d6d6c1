// Package etcd keeps the ownership of slots in etcd. A Keeper holds slots for a
// scheduler, a Directory tells who holds which, and which schedulers there are.
// What a Keeper does is decided by pkg/ownership/coordinator; this package reads the
// clock and talks to etcd for it. A Memory keeps what the owners learn.
//
// etcd holds, under a prefix,
//
//	members/<id>       one key for each scheduler: {"id", "addr", "draining"}
//	slots/<0000-1023>  one key for each slot that is owned: {"id", "addr"}
//
// all under their scheduler's one lease. The epoch of a slot is the mod revision
// of its key. The load of this on etcd depends on the number of schedulers and gateways,
// not on functions or calls.
//
// Beside that prefix, where only schedulers look,
//
//	-learnt/<0000-1023>  one key for each slot with functions that were called: the UIDs of
//	                     their revisions, and how long they run and start
//
// without a lease. Each is written by its slot's owner, in the same transaction that
// compares the epoch, once in 10 s at most, and only if something has changed by a tenth.
//
// What the package promises:
//
//   - No two Keepers ever hold a slot in the same epoch. They hold it at one time
//     only while one has not heard yet that the other was given it, or claimed it
//     after its lease had ended; the other's epoch is higher.
//   - Slots are given by their owner, never taken: to a member that comes, at a
//     bounded rate, and all of them at the end of Run, within 2 s. Meanwhile no
//     key is ever missing.
//   - Trouble with etcd moves nothing. A Keeper that lost its lease, or cannot
//     reach etcd, holds what it held until it reads that somebody else has it, and
//     is let claim it again before others; a Directory names the last owner until
//     it hears of another. Schedulers and gateways that can reach each other do
//     not need etcd to go on.
//   - Keys that were changed or removed by hand are put right within 5 s.
//   - The epochs of a slot only rise. There is one exception: when etcd itself
//     went back, because it was restored or wiped, what it says now is what
//     counts, and an error in the log says so.
package etcd
