// Package httpadapter calls a function that is a plain HTTP/1.1 server on loopback.
//
// Invariants:
//
//   - One call is at most one request: the bytes of a request are written to at most one
//     connection, once.
//   - adapter.ErrNotStarted is returned only if no byte of the request was written.
//   - A truncated answer never looks complete, and neither does a request whose client
//     disconnected.
//
// The Transport of net/http alone does not ensure the first: when a kept-alive connection ends,
// it repeats requests that it considers repeatable. Here each connection records whether a byte
// of the current request was written (exchange.go), and a second connection is refused after the
// first byte. A kept-alive connection is checked before the first byte; if the function has
// closed it, the call gets a new one.
//
// Answers stream: the head is passed on as soon as it arrives, and each read of the body is one
// write. Trailers and interim (1xx) answers are dropped.
package httpadapter
