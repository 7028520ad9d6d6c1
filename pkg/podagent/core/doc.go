// Package core decides what an agent does: which scheduler it connects to, what it sends there,
// which tickets it takes, how a call continues after its gateway or scheduler is lost, and when
// the instance drains. Package podagent carries out the effects.
//
// Invariants, in whatever order events come:
//
//   - The instance never holds more calls than the function's concurrency.
//   - A call starts only after its claim was granted, or if its request came with the ticket
//     of an idempotent function.
//   - A draining instance claims nothing.
//   - The instance pulls again only after a call that was answered completely or provably
//     never began.
//   - While a scheduler listens, credits plus held calls equal the concurrency.
//   - Connection attempts back off, whatever owners the schedulers name.
//
// A spare instance pulls nothing and gets no tickets. Its own scheduler assigns it to a
// function, once; from then on it behaves like any other instance. It ends if that scheduler
// stays away.
//
// The agent leaves a scheduler on evidence: the connection broke or was refused, three
// heartbeats stayed unanswered, or the scheduler named another owner. After two owners in a
// row refused the instance, or after its owner is known to be lost, the agent tries any
// scheduler, with growing pauses.
//
// Events keep the state in step with the process. An Audit compares the two every five
// seconds and repairs what a lost event left behind.
//
// A Core is a value in memory. It holds no lock, reads no clock and starts nothing: Step takes
// an event and the time, and returns effects in the order to carry them out.
package core
