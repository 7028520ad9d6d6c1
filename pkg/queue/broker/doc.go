// Package broker puts one lock and the time around one function's queue. It is
// the only place where a ticket meets a pull: every change of the queue ends
// in match, under the lock.
//
// A Broker never waits for anybody. An instance takes part by its Sink, which
// must take what it is given at once; the queue's own bound on how much an
// instance may hold is what lets a Sink promise that. Each credit of a pull is
// answered by at most one ticket.
package broker
