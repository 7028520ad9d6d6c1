// Package httpadapter calls a function that is a plain HTTP/1.1 server on loopback.
//
// Invariants:
//
//   - One call is at most one request: the bytes of a request are written to at most one
//     connection, once.
//   - adapter.ErrNotStarted is returned only if the system took no byte of the request.
//   - A truncated answer never looks complete, and neither does a request whose client
//     disconnected.
//
// The Transport of net/http does not ensure the first: when a kept-alive connection ends, it
// repeats requests that it considers repeatable. It also has two goroutines for each connection,
// and so wakes up three times for a call. Here the goroutine of the call itself writes the request
// (invoke.go) and reads the answer (answer.go), by net/http's parser. Nothing else runs, unless the
// body is large or comes in parts: then a second goroutine writes it (upload.go), because the
// function may answer before it has read all.
//
// Each running call has a connection, which is kept for a second after it (idle.go). Nobody reads
// from an idle connection. The next call looks whether the function has closed it or said something
// on it, which neither waits nor takes bytes (conn.go), and gets a new one if so. When the call's
// context ends, its connection is closed.
//
// Answers stream: the head is passed on as soon as it arrives, and each read of the body is one
// write. Trailers and interim (1xx) answers are dropped.
package httpadapter
