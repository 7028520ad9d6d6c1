// Package httpadapter calls a function that is a plain HTTP server on loopback.
//
// Invariants:
//
//   - One call is at most one request: the bytes of a request are written to at most one
//     connection, once.
//   - adapter.ErrNotStarted is returned only if the system took no byte of the request, or if the
//     function says by HTTP/2 that it refused the stream. adapter.ErrNotTaken is returned only if the
//     function closes a connection by HTTP/2 and says that it has left the stream behind.
//   - A truncated answer never looks complete, and neither does a request whose client
//     disconnected.
//
// # HTTP/1.1
//
// The Transport of net/http does not ensure the first: when a kept-alive connection ends, it
// repeats requests that it considers repeatable. It also has two goroutines for each connection,
// and so wakes up three times for a call. Here the goroutine of the call itself writes the request
// (invoke.go) and reads the answer (answer.go). Headers stay lists, as they are in messages, where
// net/http makes maps of them (head.go). Nothing else runs, unless the body is large or comes in
// parts: then a second goroutine writes it (upload.go), because the function may answer before it
// has read all.
//
// Each running call has a connection, which is kept for a second after it (idle.go). Nobody reads
// from an idle connection. The next call looks whether the function has closed it or said something
// on it, which neither waits nor takes bytes (conn.go), and gets a new one if so. When the call's
// context ends, its connection is closed.
//
// Answers stream: the head is passed on as soon as it arrives, and each read of the body is one
// write. Interim answers (1xx) and trailers pass. The body of a client that waits for 100 is not
// held back here: the function's 100 reaches the client, whose body then comes. After 101 the
// connection is a stream of bytes both ways until the function ends its side. The function is
// never asked to switch to HTTP/2 or TLS, in which a client could send requests that no gateway
// has seen.
//
// # HTTP/2
//
// Calls of gRPC, by their Content-Type application/grpc, are made by HTTP/2 without TLS and with
// prior knowledge (http2.go), which every server of gRPC speaks; gRPC-Web is not meant. There, calls
// share a connection, and net/http's client does the work: it repeats nothing on a connection that
// the caller holds. x/net/http2 would add 115 KB less to the agent, but has no setting for how much
// of an answer is in memory, which is 4 MiB for each call. Interim answers end here.
//
// # A function that speaks HTTP/2 only
//
// Most servers of HTTP/2 send their settings first. A call by HTTP/1.1 that gets those is
// adapter.ErrUnsendable, because no request was read. Others, such as that of net/http, close the
// connection without a word. If the function has never answered by HTTP/1.1, the adapter then
// connects by HTTP/2, without a request. If that goes well, the call ends with
// adapter.ErrOtherProtocol, and the function has the next one: ending the instance would cost a cold
// start for each such call.
package httpadapter
