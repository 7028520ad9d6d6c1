// Package gateway turns HTTP calls into invocations and results back into HTTP.
//
// It holds the client's connection and the truth about the invocation (package
// core). It asks who calls and whether there is room (packages callers and
// admission), offers a ticket to the scheduler that serves the function's slot,
// grants one instance's claim, hands that instance the request and copies its
// answer to the client. Nothing else writes an invocation's state.
//
// It promises: a call is run at most once after a claim, and is offered again
// freely before it; every error answer says in Windlass-Executed whether the
// function ran, and "no" is never wrong; an answer that is not whole never looks
// whole; a client that hangs up while its call is queued costs no instance;
// bodies are never held whole unless they are at most 64 KiB; nothing that waits
// is lost when a scheduler or an instance is; and nobody who stops reading, be it
// client, scheduler or instance, holds up others.
package gateway
