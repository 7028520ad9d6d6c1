// Package lambda serves the AWS Lambda Runtime API, so that a function that is
// built for AWS Lambda runs as it is: its runtime client polls this server for
// events as the agent polls the scheduler for tickets.
//
// The machine (machine.go) decides the order of events; it knows ids and states, and
// neither time nor connections. The dispatcher (dispatch.go) carries that out under one
// lock. The Adapter gives it the agent's calls, and the server (server.go) the requests of
// the runtime client.
//
// It promises: the runtime client gets a call at most once, unless provably no byte of it
// was sent; a call that was never handed out ends with adapter.ErrNotStarted, also when its
// deadline passes; a truncated answer never looks complete. The server refuses the answer
// to a call that timed out. It accepts and discards the answer to a call that was abandoned
// for another reason, because a refusal makes some clients exit.
//
// A spare instance's runtime does not know its function. It asks
// GET /windlass/v1/assignment, which waits until Assign was called and then answers with
// the function's variables and files; from then on all is as above. One request gets the
// assignment, once; any other gets 410 Gone. A runtime that asks for an event instead does
// not know spare instances, and has failed.
//
// The event is the call's body and nothing else; an empty body becomes "{}".
// The server sees the function's end only by the connections of its runtime client
// (clients.go). The agent, if it knows of the end, cancels the context of the calls.
package lambda
