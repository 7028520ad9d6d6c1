// Package podagent is the agent beside every instance: it pulls tickets from the scheduler,
// claims the calls at their gateways, runs them through an adapter and answers the gateways.
// The place of a call that has ended stays with its gateway, if the scheduler agreed; the gateway
// then hands over calls directly.
//
// Invariants:
//
//   - A call reaches the function only after its claim was granted, or in a place that is lent
//     to its gateway, and never twice.
//   - No more calls run at a time than the function's concurrency.
//   - The instance is used again only after a call with a complete answer; after any other the
//     function may still be busy.
//   - A draining agent says goodbye, finishes its running calls, and ends when the gateways
//     have the results and the scheduler has the goodbye.
//   - Only a gateway's own cancellation ends a call early.
//
// Package core decides what the agent does; this package carries that out. It connects, sends
// and receives, runs calls, and feeds the core events.
//
// The loss of a scheduler does not touch running calls. The agent connects to another one as
// soon as there is evidence, and tries for as long as it would wait for a call, at least for a
// minute after its last call. It then says hello again, pulls as many tickets as it can run, and
// reports what it has lent. The loss of a gateway does not touch its calls either: they run to
// their end, and the agent discards their answers. It dials the gateway again, which learns from
// the hello which calls never came.
//
// One connection (package callwire) carries all calls of a gateway. Its reader starts the calls
// and never writes. The goroutine of a call appends the last frame of the answer in the step in
// which the core decides about the call's place, under the agent's lock, and writes it after
// that.
//
// The agent of a spare instance has a runtime and no function. It says hello when the runtime
// has loaded, and waits until its scheduler assigns it to a function. It hands the runtime the
// code, and is the agent of that function's instance from then on.
//
// An idle agent goes quiet after BackoffAfter: it takes its loans back and releases memory.
// Its pull stays open, which costs a ping every 5 s. After IdleTimeout more, it asks to leave.
// The scheduler decides, so that the last instance stays as long as the function's scaling
// requires.
package podagent
