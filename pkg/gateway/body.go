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
	// lastRead is how long the server goes on dropping what it sends, and
	// lastBytes how much of it.
	lastRead  = 2 * time.Second
	lastBytes = 256 << 20
)

// linger sends the answer and drops what the client is still sending, so that it comes
// to read it. It is for HTTP/1, whose connection ends then; a client that waits for
// 100 Continue has sent nothing and is not asked to.
func linger(rc *http.ResponseController, r *http.Request) {
	if r.ProtoMajor != 1 || r.Header.Get("Expect") != "" || rc.Flush() != nil {
		return
	}
	_ = rc.SetReadDeadline(time.Now().Add(lastRead))
	_, _ = io.CopyN(io.Discard, r.Body, lastBytes)
}

// requestBody is the body of a call's request, which an attempt reads while the
// HTTP handler waits. The handler must not return while a Read is under way, but
// it need not wait for what the reader does in between.
type requestBody struct {
	body io.Reader
	// abort ends a Read that is under way.
	abort func()
	// replay is what a next attempt needs of what was read already.
	replay replay
	// ended says that it was read to its end.
	ended atomic.Bool
	// unhurried says that the function has begun to answer. Client and function
	// then may talk to each other, with pauses.
	unhurried atomic.Bool
	// slow says that it was given up.
	slow atomic.Bool

	mu     sync.Mutex // held while reading
	closed bool
	pace   pace
	watch  *time.Timer // gives it up while a Read is under way
}

// Read implements io.Reader. After close it fails with errDetached.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errDetached
	}
	began := time.Now()
	if b.watch == nil {
		b.watch = time.AfterFunc(b.pace.left(), b.giveUp)
	} else {
		b.watch.Reset(b.pace.left())
	}
	n, err := b.body.Read(p)
	b.watch.Stop()
	b.pace = b.pace.after(n, time.Since(began))
	switch {
	case errors.Is(err, io.EOF):
		b.ended.Store(true)
	case err != nil && b.slow.Load():
		err = errTooSlow
	}
	return n, err
}

// readFor reads what an attempt has not had yet, which begins at the given offset.
func (b *requestBody) readFor(attempt, offset int, p []byte) (int, error) {
	if n, err := b.replay.from(attempt, offset, p); n > 0 || err != nil {
		return n, err
	}
	n, err := b.Read(p)
	b.replay.keep(attempt, p[:n])
	return n, err
}

// giveUp ends a Read that has waited for too long.
func (b *requestBody) giveUp() {
	if !b.unhurried.Load() {
		b.slow.Store(true)
		b.abort()
	}
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
