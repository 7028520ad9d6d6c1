// Package httpadapter calls a function that is a plain HTTP/1.1 server on
// loopback.
//
// Its promise is that one call is at most one request: whatever happens, the
// bytes of a request are written to at most one connection, once. net/http
// alone does not promise that, since its Transport repeats requests that it
// takes for repeatable when a kept-alive connection ends. Here each connection
// keeps account of whether a byte of the current request was written
// (exchange.go); a second connection is refused after the first byte, and
// adapter.ErrNotStarted is returned only if there was none. A kept-alive
// connection that the function closed meanwhile is looked at before the first
// byte, so that it costs a new connection and not the call.
//
// Answers stream: the head is passed on as soon as it came, and each read of
// the body is one write. An answer that is cut short is never passed off as a
// complete one, and neither is a request whose client broke off. Trailers and
// interim (1xx) answers are dropped.
package httpadapter
