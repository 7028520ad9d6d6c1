// Package gateway turns HTTP calls into invocations and results back into HTTP.
//
// It holds the client's connection and the state of the invocation (package core). It
// authenticates the caller and checks limits (packages auth and admission), offers a ticket
// to the scheduler that serves the function's slot, grants one instance's claim, hands that
// instance the request and copies its answer to the client. Nothing else writes an
// invocation's state.
//
// It promises:
//   - a call runs at most once after a claim, and is offered again freely before it;
//   - every error answer says in Windlass-Executed whether the function ran, and "no" is
//     never wrong;
//   - a truncated answer never looks complete;
//   - a client that hangs up while its call is queued costs no instance;
//   - only bodies of at most 64 KiB are held whole;
//   - a waiting call survives the loss of a scheduler or an instance;
//   - a client, scheduler or instance that stops reading holds up no other.
package gateway
