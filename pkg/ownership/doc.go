// Package ownership says who is responsible for which functions.
//
// Functions are spread over a fixed number of slots by a hash of their UID, and
// each slot has one owner: the scheduler that holds the queues of its
// functions. An epoch counts how often a slot changed hands. Whoever hears of
// two owners believes the one with the higher epoch.
//
// Ownership is a hint about where to turn and never a lock. For a moment two
// schedulers may both believe that they own a slot; an invocation still runs
// once, because only its gateway lets it be claimed.
//
// SlotOf, and with it the number of slots, can never change: programs of two
// versions that run side by side must agree on it.
package ownership
