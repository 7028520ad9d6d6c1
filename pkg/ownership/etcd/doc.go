// Package etcd keeps the ownership of slots in etcd. A Keeper holds slots for a
// scheduler, a Directory tells a gateway who holds which.
//
// etcd holds, under a prefix,
//
//	members/<id>       one key for each scheduler
//	slots/<0000-1023>  one key for each slot that is owned
//
// all with the value {"id", "addr"} and all under their scheduler's one lease.
// The epoch of a slot is the mod revision of its key. The load on etcd depends
// on the number of schedulers and gateways, not on functions or calls, which
// never appear there.
//
// What the package promises:
//
//   - A slot's key is created only where there is none, and replaced only by a
//     scheduler of the same name. So no two Keepers ever hold a slot in the same
//     epoch. They hold it at one time only if one lost its lease, or its name to
//     a successor, and has not heard of it yet; the other's epoch is higher.
//   - Trouble with etcd moves nothing. A Keeper that lost its lease, or cannot
//     reach etcd, holds what it held until it reads that somebody else has it; a
//     Directory names the last owner until it reads of another. Schedulers and
//     gateways that can reach each other do not need etcd to go on.
//   - The epochs of a slot only rise. There is one exception: when etcd itself
//     went back, because it was restored or wiped, what it says now is what
//     counts, and an error in the log says so.
package etcd
