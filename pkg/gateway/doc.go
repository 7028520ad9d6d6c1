// Package gateway turns HTTP calls into invocations and results back into HTTP.
//
// Invariants:
//
//   - A call runs at most once after a claim, and is offered again freely before it.
//   - Every error answer says in Windlass-Executed whether the function ran, and "no" is never
//     wrong.
//   - A truncated answer never looks complete.
//   - A client that hangs up while its call is queued costs no instance.
//   - Only bodies of at most 64 KiB are held whole.
//   - A waiting call survives the loss of a scheduler or an instance.
//   - A client, scheduler or instance that stops reading holds up no other.
//
// A gateway holds the client's connection and the state of the invocation (package core). It
// authenticates the caller and checks limits (packages auth and admission), offers a ticket to the
// scheduler that serves the function's slot, grants one instance's claim, hands that instance the
// request and copies its answer to the client. Nothing else writes an invocation's state.
package gateway
