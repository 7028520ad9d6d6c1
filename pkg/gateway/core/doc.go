// Package core decides the life of one invocation at its gateway: when its ticket is
// offered, which instance has it, when it is tried again, and how its client is answered.
//
//	Admitted ── Queue ──▶ Queued ── Claim ──▶ Claimed ── its answer has come ──▶ Ended
//	                        ▲                    │
//	                        └── Release, Lose ───┘
//
// An invocation is queued until an instance claims it with the token of its ticket. The
// claim is one step, so at most one instance has it at any time. An instance that did
// not start releases it, which queues it again under a new token; so does the loss of an
// instance, if the function may run twice. Whether a client still waits for the answer
// is a second matter (Answer): an invocation whose client left while it ran stays
// Claimed, because only an instance whose call has ended takes another.
//
// Any event may be lost: a ticket with its scheduler, the end of a stream, a timer. So an
// Audit compares, a few times a second, the recorded state of an invocation with what is
// observed of its function, its scheduler and its instance, and repairs what differs.
//
// What follows from each event is a Decision. The invocation promises:
//   - Executed is "no" only if no instance has had the request: it was never claimed but
//     by instances that released it, and no ticket carried the request.
//   - A client is answered once.
//   - Once an invocation has Ended, no claim of it is granted.
//
// An Invocation holds no lock, reads no clock and writes to nobody. HTTP, streams and
// timers are the gateway's.
package core
