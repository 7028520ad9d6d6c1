package serve

import "net/http"

// ClientLeft reports whether the client of an HTTP/1 request that Calls serves has ended its
// side of the connection. It also works while an unread body precedes that end, where net/http
// does not look. It neither waits nor reads from the connection. It is false where that cannot
// be known.
func ClientLeft(r *http.Request) bool {
	c, ok := r.Context().Value(clientKey{}).(*clientConn)
	return ok && r.ProtoMajor == 1 && hungUp(c.TCPConn)
}
