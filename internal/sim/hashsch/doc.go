// Package hashsch is what pulling is compared with: the hash-based scheduling of
// FPCSch III-C, which Apache OpenWhisk has as its sharding balancer, and the pool of
// containers of its workers. Calls are pushed.
//
// A Balancer is one controller's view. It sends a function's calls to the worker that
// the function's name is hashed to, its home, as long as the controller's own share of
// that worker is not used up; then it steps on, by a number without common divisor
// with the number of workers, until it finds a worker whose share is not used up. If
// there is none, it sends the call to any worker, and its books go below zero.
// Controllers do not know of each other.
//
// A Worker has containers, busy or warm. A call takes a warm container of its
// function; else a new one, if there is room; else a new one in place of the warm
// container of other functions that was used least recently; else it waits, and all
// that come after it wait behind it.
//
// Two things are simpler than there. A worker of several warm containers of one
// function takes the one that was used last, where OpenWhisk takes any; and there are
// no containers that were started in advance for no function yet.
package hashsch
