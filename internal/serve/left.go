package serve

import "net/http"

// ClientLeft tells whether the client of a request in HTTP/1 that Calls serves has
// ended its side of the connection, also while there is a body before that end which
// nobody has read: there, net/http does not look. It does not wait, and it takes
// nothing from the connection. It is false where that cannot be known.
func ClientLeft(r *http.Request) bool {
	c, ok := r.Context().Value(clientKey{}).(*clientConn)
	return ok && r.ProtoMajor == 1 && hungUp(c.TCPConn)
}
