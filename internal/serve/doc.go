// Package serve serves what Windlass's programs have in common: HTTP and gRPC with
// the limits that fit them, health checks and metrics. What it serves ends with
// its context, and in order.
//
// Its limits are against clients that take too much or too long. What it promises
// of them:
//
//   - A stream of the wire whose first message does not come soon, or is long,
//     ends. Whoever guesses tokens, or goes on with an attempt that was cancelled,
//     loses the connection.
//   - A client of the wire of which nothing was accepted so far costs next to nothing,
//     and all of them together a bounded amount: what they send beyond it is not read.
//     One address with many of them does not keep out the others.
//   - What is refused is counted, by reasons whose number is fixed.
//   - What is no proper HTTP/1.1 is answered like any refusal: with the word that
//     no function ran. An answer that a handler gives is never changed.
package serve
