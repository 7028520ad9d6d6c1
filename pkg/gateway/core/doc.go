// Package core decides the life of one invocation at its gateway: when its ticket is offered, which
// instance gets it, when it is tried again, and how its client is answered.
//
//	Admitted ── Queue ──▶ Queued ── Claim ──▶ Claimed ── its answer has come ──▶ Ended
//	                        ▲                    │
//	                        └── Release, Lose ───┘
//
// Invariants:
//
//   - At most one instance has an invocation at any time, because a claim is one step.
//   - Executed is "no" only if no instance has had the request: only instances that released
//     it have claimed it.
//   - A client is answered once.
//   - Once an invocation has Ended, no claim of it is granted.
//
// An invocation is queued until an instance claims it with the token of its ticket, or the gateway
// hands it to an instance that has lent a pull (ClaimByLoan). A Pool decides which of the two: it
// has the lent pulls, and the calls that wait. It also knows the calls that their instances have not
// begun because their nodes are busy (LongWait), and asks for one when an instance on a calm node has
// a place for it: the instance gives it up, which is a Release, or has begun it.
//
// An instance that did not start releases a call, which queues it again under a new token. The loss
// of an instance queues it again only if the function may run twice. Whether a client still waits
// for the answer is a separate state (Answer): an invocation whose client left while it ran stays
// Claimed, because only an instance whose call has ended takes another.
//
// Any event may be lost: a ticket with its scheduler, the end of an attempt, a timer. So an Audit
// compares, a few times a second, the recorded state of an invocation with what is observed of its
// function, its scheduler and its instance, and repairs differences.
//
// Each event leads to a Decision. An Invocation holds no lock, reads no clock and does no I/O; the
// gateway owns HTTP, connections and timers.
package core
