// Package ownership decides which scheduler is responsible for which function.
//
// A hash of a function's UID assigns it to one of a fixed number of slots. Each slot has one
// owner, the scheduler that holds the queues of the slot's functions. The epoch of a slot rises
// with every change of owner: between two claims to a slot, the one with the higher epoch
// counts.
//
// Ownership says where to send tickets and pulls; it is not a lock. Two schedulers may both
// believe for a moment that they own a slot. An invocation still runs once, because its gateway
// grants one claim.
//
// SlotOf and the number of slots can never change: programs of two versions that run side by
// side must agree on them.
//
// Package coordinator decides which slots a scheduler holds, package etcd stores that, and
// package health detects owners that do not answer.
package ownership
