// Package serve runs the servers of Windlass's programs: HTTP, gRPC and the connections of agents
// (package callwire) with limits, health checks and metrics. Its servers stop in order when their
// context ends.
//
// Its limits protect against clients that take too much or too long. Invariants:
//
//   - A wire stream ends if its first message does not come soon, or is long, and so does the
//     connection of an agent that carries calls. An agent that guesses tokens loses it.
//   - An agent's stream has one goroutine, which also is its handler's, and no buffer while it
//     is idle. Its clients are gRPC's; other methods on its port are gRPC's server's. No frames make it
//     hold more than one message, or start goroutines.
//   - A wire client without an accepted message costs next to nothing, and all of them
//     together a bounded amount: anything beyond it is not read. One address with many such
//     clients does not keep out others.
//   - Connections of clients that have no request are bounded, and one address with many does not
//     keep out others.
//   - Every rejection is counted, by a fixed set of reasons.
//   - Malformed HTTP/1.1 is answered like any rejection: with the statement that no function
//     ran. A handler's answer is never changed.
package serve
