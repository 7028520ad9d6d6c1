// Package core decides what an agent does: which scheduler it turns to, what it
// says there, which tickets it takes, what becomes of a call whose gateway or
// scheduler is gone, and when the instance is given up. Package podagent carries
// the effects out.
//
// It promises, whatever events come in whatever order: no more calls are held at a
// time than the function's concurrency; a call is started only after its claim was
// granted, or if its request came with the ticket of an idempotent function; none is
// claimed after the instance was given up; an instance is asked for again only after a
// call that was answered completely or provably never began; what is asked for plus
// what is held is the concurrency, for as long as a scheduler listens; and no
// scheduler is tried in a frenzy, whatever schedulers say of each other.
//
// A spare instance asks for nothing and is given nothing. It becomes a function's once,
// by the word of the scheduler that it belongs to, and is like any other from then on.
// If that scheduler stays away, it ends.
//
// A scheduler is left on evidence: its connection broke or was refused, it did not
// answer for as long as three beats take, or it names another owner. After two owners
// in a row that did not want the instance, and after an owner that is known to be
// gone, any scheduler is asked, with growing pauses.
//
// What an agent believes is a copy of what is there, kept up to date by events. An Audit
// compares the two, every five seconds, and mends what a lost event left behind.
//
// A Core is a value in memory. It holds no lock, reads no clock and starts nothing:
// Step takes an event and the time, and returns what is to be done, in order.
package core
