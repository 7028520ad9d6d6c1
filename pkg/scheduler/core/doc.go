// Package core decides for one function: which calls are let in, which instance gets
// which call, how many instances there should be, which of them go, and when a scheduler
// that is not the owner lets go of everything.
//
// A Function is the whole state: the queue, admission, what was learnt of execution and
// start times, the minimum that schedule and idle times ask for, the decider's memory,
// and the instances that have joined. Step takes an Event and returns the Effects, in
// order. It reads no clock, holds no lock, and calls nothing: the scheduler holds one lock
// around each Function, feeds it events, and carries the effects out before it lets go
// of the lock. The simulators do the same with their own clock and network.
//
// It promises:
//
//   - a ticket that was let in is handed out, refused with a reason, withdrawn by its
//     gateway, or expires; and it is with one instance at a time (see package queue);
//   - nothing is decided, handed out or let in without a term in which the function is
//     served here, and every term ends with all instances dismissed and all tickets
//     refused;
//   - after a takeover nothing is decided for HelloTime as long as instances that ran
//     before have not said hello, or a failover would order all of them again;
//   - while nobody can confirm the ownership, at most a fifth more instances exist than
//     there were;
//   - a Function that rests has nothing to do until an event wakes it or its Rest.Until
//     comes.
package core
