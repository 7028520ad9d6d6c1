package serve

import (
	"io"
	"net/http"
	"time"
)

// lingerBytes is how much a connection that lingers discards.
const lingerBytes = 256 << 20

// Linger makes the connection of an HTTP/1 request that Calls serves discard what its client is still
// sending, when it is closed, until the client has ended its side, but not beyond a time: a connection
// that is closed on unread bytes is reset, and the answer may be lost with it.
func Linger(r *http.Request, until time.Time) {
	if c, ok := r.Context().Value(clientKey{}).(*clientConn); ok && r.ProtoMajor == 1 {
		c.lingerUntil.Store(until.UnixNano())
	}
}

// linger does what Linger asked for. It does so once: the next Close ends it.
func (c *clientConn) linger() {
	until := c.lingerUntil.Swap(0)
	if until == 0 || c.CloseWrite() != nil {
		return
	}
	_ = c.SetReadDeadline(time.Unix(0, until))
	_, _ = io.CopyN(io.Discard, c.raw, lingerBytes)
}
