// Package core decides everything about one function at its scheduler: which calls are
// admitted, which instance gets which call, how many instances run, which of them leave, and
// how a scheduler that loses the function's slot gives it up.
//
// Invariants:
//
//   - An admitted ticket is handed out, refused with a reason, cancelled by its gateway, or
//     expires. One instance holds it at a time (see package queue).
//   - A function decides, admits and hands out only during a term, the time for which this
//     scheduler serves it. At the end of a term it redirects all instances and refuses all
//     tickets.
//   - For at most HelloTime after a takeover, while instances of the previous owner have not
//     connected, a function decides nothing. Otherwise a failover would launch a replacement
//     for each of them. At a standby it decides nothing for 15 s unless tickets wait.
//   - While nobody can confirm the ownership, a function has at most a fifth more instances
//     than when that began.
//   - A parked function has nothing to do until an event wakes it or its Park.Until comes.
//
// A Function holds the whole state: the queue, admission, the estimates of execution and
// start times, the floor, the decider's memory, and the joined instances. Step takes an Event
// and returns Effects in the order to carry them out.
//
// A Function reads no clock, holds no lock and calls nothing. The scheduler guards each
// Function with one lock, feeds it events, and carries out the effects before it releases the
// lock. Simulators do the same with their own clock and network.
//
// Package capacity decides about nodes and the rest that functions share. What a scheduler and
// its simulators share beside that is here: PauseDetector, and the periods of ticks and audits.
package core
