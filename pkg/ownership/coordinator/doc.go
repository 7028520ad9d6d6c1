// Package coordinator decides which slots a scheduler holds, claims and gives away,
// from what it hears of a store of leased keys. The store says who owns a slot;
// rendezvous hashing says only who tries first, and where slots drift to.
//
// A Core takes news of the store and the time, and says which transaction to try
// next. It reads no clock and talks to nobody: pkg/ownership/etcd does that for
// it, and a simulator can. A View is what is known of the store's keys, and a
// Store is the store itself, in memory: with etcd's rules as far as a Core can
// tell the difference.
//
// What a Core promises:
//
//   - A key is created only where there is none, and replaced only by whoever it
//     names, by its owner that gives it away, or if it lacks a lease, which no
//     scheduler ever writes. All of it is conditional, so nothing is taken from
//     a living owner, whatever a Core has not heard of yet.
//   - A slot is given in one step: its key passes to the heir under the heir's
//     lease. At no moment is there no key.
//   - A slot is held until a key says that somebody else has it. A Core that
//     hears nothing holds on, claims nothing and gives nothing.
//   - What is held follows from the keys alone, so a Core that has heard of all
//     keys cannot disagree with them.
package coordinator
