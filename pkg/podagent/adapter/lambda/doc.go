// Package lambda serves the AWS Lambda Runtime API, so that functions built for AWS Lambda run
// unchanged: the runtime client polls this server for events as the agent polls the scheduler
// for tickets.
//
// Invariants:
//
//   - The runtime client gets a call at most once, unless provably no byte of it was sent.
//   - A call that was never handed out ends with adapter.ErrNotStarted, also when its deadline
//     passes, or with adapter.ErrTooLate if its deadline passed before its event was there, or
//     with adapter.ErrNotTaken if it passed before there was room for the event.
//   - A truncated answer never looks complete.
//   - The server refuses the answer to a call that timed out. It accepts and discards the
//     answer to a call that was abandoned for another reason, because a refusal makes some
//     clients exit.
//
// The machine (machine.go) decides the order of events; it knows ids and states, and neither
// time nor connections. The dispatcher (dispatch.go) carries out its decisions under one lock.
// The Adapter passes the agent's calls to the dispatcher, and the server (server.go) the
// requests of the runtime client.
//
// The runtime of a spare instance does not know its function. It requests
// GET /windlass/v1/assignment, which waits for Assign and then returns the function's variables
// and files; from then on it works like any other. One request gets the assignment, once;
// any other gets 410 Gone. A runtime that asks for an event instead does not support spare
// instances, and has failed.
//
// The event is the call's body and nothing else; an empty body becomes "{}". The server notices
// the function's end only by the connections of its runtime client (clients.go). An agent that
// knows of the end cancels the context of the calls.
package lambda
