// Package httpadapter calls a function that is a plain HTTP/1.1 server on
// loopback.
//
// Its promise is that one call is at most one request: whatever happens, the
// bytes of a request are written to at most one connection, once. net/http
// alone does not promise that, since its Transport repeats requests that it
// takes for repeatable when a kept-alive connection ends. Here each connection
// records whether a byte of the current request was written
// (exchange.go); a second connection is refused after the first byte, and
// adapter.ErrNotStarted is returned only if there was none. A kept-alive
// connection is checked before the first byte: if the function has closed it, the
// call gets a new connection.
//
// Answers stream: the head is passed on as soon as it came, and each read of
// the body is one write. A truncated answer never looks complete, and neither does
// a request whose client broke off. Trailers and
// interim (1xx) answers are dropped.
package httpadapter
