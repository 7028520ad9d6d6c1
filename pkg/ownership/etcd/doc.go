// Package etcd stores the ownership of slots in etcd. A Coordinator claims and holds slots for
// a scheduler; pkg/ownership/coordinator decides which. A Directory follows the owners and the
// members. An EstimateStore keeps the execution and start times that owners have measured.
//
// Below a prefix, etcd holds
//
//	members/<id>       one key for each scheduler: {"id", "addr", "draining"}
//	slots/<0000-1023>  one key for each owned slot: {"id", "addr"}
//
// each under the lease of its scheduler. The epoch of a slot is the mod revision of its key. The
// load on etcd grows with the number of schedulers and gateways, not with functions or calls.
//
// Beside that prefix, where only schedulers look, it holds, without a lease,
//
//	-estimates/<0000-1023>  one key for each slot with functions that were called: the UIDs of
//	                     their revisions, with their execution and start times
//
// The slot's owner writes each key in a transaction that compares the epoch, at most once in
// 10 s, and only if a value has changed by a tenth.
//
// Invariants:
//
//   - No two Coordinators hold a slot in the same epoch. Both hold it at one time only until
//     the old owner reads that the slot was handed off, or claimed after its lease ended; the
//     new owner's epoch is higher.
//   - Only its owner hands off a slot: to a new member, at a bounded rate, and every slot at
//     the end of Run, within 2 s. Meanwhile no key is missing.
//   - Trouble with etcd moves nothing. A Coordinator that lost its lease, or cannot reach etcd,
//     holds its slots until it reads that another scheduler has them, and may claim them again
//     before others do. A Directory names the last known owner until it reads of another.
//     Schedulers and gateways that reach each other go on without etcd.
//   - Keys that were changed or removed by hand are restored within 5 s.
//   - The epochs of a slot only rise, with one exception: after etcd was restored or wiped, its
//     present content counts, and the log records an error.
package etcd
