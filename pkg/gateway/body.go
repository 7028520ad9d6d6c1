package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A client whose request was answered before it was read may still be sending
// it. A connection that is closed on unread bytes is reset, and the answer may be
// lost with it.
const (
	// stillSending is how soon the next bytes of such a client come.
	stillSending = 50 * time.Millisecond
	// lastRead is how long the server goes on dropping what it sends.
	lastRead = time.Second
)

// requestBody is the body of a call's request, which an attempt reads while the
// HTTP handler waits. The handler must not return while a Read is under way, but
// it need not wait for what the reader does in between.
type requestBody struct {
	body io.Reader
	// taken says that it was, or is being, read: a next attempt cannot.
	taken atomic.Bool
	// ended says that it was read to its end.
	ended atomic.Bool

	mu     sync.Mutex // held while reading
	closed bool
}

// Read implements io.Reader. After close it fails with errDetached.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errDetached
	}
	n, err := b.body.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
}

// close ends the Read that is under way and makes every one after it fail.
func (b *requestBody) close(rc *http.ResponseController) {
	if !b.mu.TryLock() {
		if !b.ended.Load() {
			_ = rc.SetReadDeadline(time.Now().Add(stillSending))
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	b.closed = true
	if !b.ended.Load() {
		_ = rc.SetReadDeadline(time.Now().Add(lastRead))
	}
}
