// Package core decides what an agent does: which scheduler it connects to, what it sends there,
// which calls it takes, which places it lends to gateways, how a call continues after its gateway
// or scheduler is lost, and when the instance drains. Package podagent executes the effects.
//
// Invariants, in whatever order events come:
//
//   - The instance never holds more calls than the function's concurrency.
//   - A call starts only after its claim was granted, or in a place that was lent to its gateway.
//   - A draining instance claims nothing, and declines calls by credits.
//   - The instance pulls or lends again only after a call that was answered completely or
//     provably never began.
//   - While a scheduler listens, pulls plus idle credits of gateways plus held calls equal the
//     concurrency.
//   - While no scheduler answers for long, each gateway that has called the instance may call each of its free places.
//   - Connection attempts back off, whatever owners the schedulers name.
//
// The core is the arbiter of the instance's places. Each place is pulled at the scheduler, holds
// a call, or is lent: an idle credit of one connection to a gateway. A ticket that says so
// (Ticket.Lent) leaves its place with the gateway when its call has ended; Deliver.Keeps goes
// out with the answer's last frame. The credits of the agent change when it sends a frame, and
// those of the gateway when it gets the frame, so both agree when no frame is under way. A call
// by a credit that the agent has taken back meanwhile is declined, and a return of such a credit
// is answered by Lend. Loans end by a Recall, when the instance goes quiet or drains, or with
// the connection. While no scheduler answers for long, gateways share places: together they may have
// more credits than places are free, and a call that comes too late for one is declined.
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
