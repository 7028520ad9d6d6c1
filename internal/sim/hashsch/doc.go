// Package hashsch implements the scheduling that pulling is compared with: the hash-based
// scheduling of FPCSch III-C, which is the sharding balancer of Apache OpenWhisk, and the
// container pool of its workers. Calls are pushed.
//
// A Balancer is one controller's view. It sends a function's calls to its home, the worker that
// the function's name is hashed to, until the controller's own share of that worker is used up. It
// then steps on, by a number coprime to the number of workers, to a worker with an unused share.
// If none has one, it sends the call to any worker and overdraws its share. Controllers do not
// know of each other.
//
// A Worker has containers, busy or warm. A call takes a warm container of its function; else a new
// one, if there is room; else a new one in place of the least recently used warm container of
// other functions; else it waits, and all later calls wait behind it.
//
// Two things are simpler than in OpenWhisk. Of several warm containers of one function, a worker
// takes the one that was used last, where OpenWhisk takes any. No containers are started in
// advance without a function.
package hashsch
