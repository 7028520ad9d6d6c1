// Package core decides what an agent does: which scheduler it connects to, what it
// sends there, which tickets it takes, how a call goes on whose gateway or scheduler is
// gone, and when the instance drains. Package podagent carries the effects out.
//
// Whatever events come in whatever order, it promises:
//   - the instance never holds more calls than the function's concurrency;
//   - a call starts only after its claim was granted, or if its request came with the
//     ticket of an idempotent function;
//   - a draining instance claims nothing;
//   - the instance pulls again only after a call that was answered completely or provably
//     never began;
//   - while a scheduler listens, credits plus calls held equal the concurrency;
//   - connection attempts back off, whatever owners schedulers name.
//
// A spare instance pulls nothing and gets no tickets. Its own scheduler assigns it to a
// function, once; from then on it is like any other. If that scheduler stays away, it ends.
//
// The agent leaves a scheduler on evidence: its connection broke or was refused, it did not
// answer for three heartbeats, or it names another owner. After two owners in a row that
// did not want the instance, and after an owner that is known to be gone, the agent asks
// any scheduler, with growing pauses.
//
// The state is a copy of what happens in the process, kept up to date by events. An Audit
// compares the two every five seconds, and repairs what a lost event left behind.
//
// A Core is a value in memory. It holds no lock, reads no clock and starts nothing:
// Step takes an event and the time, and returns effects in the order to carry them out.
package core
