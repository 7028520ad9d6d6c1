// Package lambda serves the AWS Lambda Runtime API, so that a function that is
// built for AWS Lambda runs as it is: its runtime client polls this server for
// events as the agent polls the scheduler for tickets.
//
// What may happen when is decided by machine (machine.go), which knows ids and
// states and neither time nor connections; the dispatcher (dispatch.go) is the shell
// that carries that out under one lock. The Adapter gives it the agent's calls, and the
// server (server.go) the requests of the runtime client.
//
// Its promises: a call is handed to the runtime client at most once, unless
// provably no byte of it was sent; a call that was never handed out ends with
// adapter.ErrNotStarted, also when its deadline passes; an answer that is cut
// short is never passed off as complete. An answer to a call that timed out is
// refused. An answer to a call that was given up for another reason is taken
// and thrown away, because a refusal makes some clients exit.
//
// A spare instance's runtime does not know its function. It asks
// GET /windlass/v1/assignment, which waits until Assign was called and then answers with
// the function's variables and files; from then on all is as above. That is answered
// once, to one: whoever asks besides is told that it is gone (410). A runtime that asks
// for an event instead does not know what a spare instance is, and has failed.
//
// The event is the call's body and nothing else; an empty body becomes "{}".
// The function's end is seen here only by the connections of its runtime client (clients.go).
// Whoever watches the function ends the context of its calls.
package lambda
