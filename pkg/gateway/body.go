package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// errDetached is returned for what would be read from, or sent to, a client that does not
// wait for it.
var errDetached = errors.New("gateway: the client is gone")

// smallBody is the largest body, in bytes, that the gateway reads before it asks for an
// instance and that the Call frame carries.
const smallBody = 64 << 10

// isSmall reports whether the gateway reads a body before it asks for an instance.
func isSmall(r *http.Request) bool { return r.ContentLength >= 0 && r.ContentLength <= smallBody }

// bodyChunk is how much of a large body one message carries.
const bodyChunk = 32 << 10

// A client whose request was answered before it was read may still be sending
// it. A connection that is closed on unread bytes is reset, and the answer may be
// lost with it.
const (
	// nextBytesTimeout is how soon the next bytes of such a client come.
	nextBytesTimeout = 50 * time.Millisecond
	// lingerTimeout is how long the server goes on discarding what the client sends.
	lingerTimeout = 2 * time.Second
)

// linger lets a client that is still sending come to read its answer. It is for HTTP/1, whose connection
// ends then, and waits for nothing, because net/http writes the end of an answer after the handler. A client
// that waits for 100 Continue has sent nothing, unless it was asked for its body.
func (g *Gateway) linger(r *http.Request, asked bool) {
	if r.ProtoMajor == 1 && (asked || r.Header.Get("Expect") == "") {
		g.deps.Linger(r, time.Now().Add(lingerTimeout))
	}
}

// requestBody is the body of a call's request, which an attempt reads while the
// HTTP handler waits. The handler must not return while a Read is under way, but
// it need not wait for what the reader does in between.
type requestBody struct {
	body io.Reader
	// conn ends a Read that is under way.
	conn readDeadliner
	// replay keeps the bytes that a next attempt needs.
	replay replay
	reading

	mu     sync.Mutex // held while reading
	closed bool
	budget waitBudget
	timer  *time.Timer // gives it up while a Read is under way
}

// readDeadliner is what of an http.ResponseController a requestBody needs.
type readDeadliner interface{ SetReadDeadline(at time.Time) error }

// reading is the progress of reading a body, for observers that do not wait for it.
type reading struct {
	// asked says that a Read has begun, so that a client that waits for 100 Continue sends.
	asked atomic.Bool
	// ended says that it was read to its end.
	ended atomic.Bool
	// mayPause says that the function has begun to answer, or that the call is one of gRPC, whose
	// functions send a head with their first message only. Client and function may then talk to
	// each other, with pauses.
	mayPause atomic.Bool
	// slow says that it was given up.
	slow atomic.Bool
}

// Read implements io.Reader. After close it fails with errDetached.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errDetached
	}
	b.asked.Store(true)
	began := time.Now()
	if b.timer == nil {
		b.timer = time.AfterFunc(b.budget.left(), b.abortSlowRead)
	} else {
		b.timer.Reset(b.budget.left())
	}
	n, err := b.body.Read(p)
	b.timer.Stop()
	b.budget = b.budget.after(n, time.Since(began))
	switch {
	case errors.Is(err, io.EOF):
		b.ended.Store(true)
	case err != nil && b.slow.Load():
		err = errTooSlow
	}
	return n, err
}

// readFor reads what an attempt has not had yet, which begins at the given offset, until the
// attempt is over. An earlier attempt may still be reading, and what is kept does not wait for it:
// the client may send nothing more before it has an answer.
func (b *requestBody) readFor(attempt, offset int, p []byte, over <-chan struct{}) (int, error) {
	if n, err := b.replay.readFrom(attempt, offset, p); n > 0 || err != nil {
		return n, err
	}
	if !b.replay.awaitTurn(over) {
		return 0, errReleased
	}
	defer b.replay.done()
	if n, err := b.replay.readFrom(attempt, offset, p); n > 0 || err != nil {
		return n, err
	}
	n, err := b.Read(p)
	b.replay.store(attempt, p[:n])
	return n, err
}

// abortSlowRead ends a Read that has waited too long.
func (b *requestBody) abortSlowRead() {
	if !b.mayPause.Load() {
		b.slow.Store(true)
		_ = b.conn.SetReadDeadline(time.Now())
	}
}

// close ends the running Read and makes all later ones fail.
func (b *requestBody) close() {
	if !b.mu.TryLock() {
		if !b.ended.Load() {
			_ = b.conn.SetReadDeadline(time.Now().Add(nextBytesTimeout))
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	b.closed = true
	if !b.ended.Load() {
		_ = b.conn.SetReadDeadline(time.Now().Add(lingerTimeout))
	}
}

const (
	// bodyGrace is how long a body may stand still, and what one that has come
	// fast may stand still later.
	bodyGrace = 10 * time.Second
	// bodyRate is how many bytes a second it must have in the long run.
	bodyRate = 1 << 10
)

// errTooSlow says that a body came so slowly that it was given up.
var errTooSlow = errors.New("it came too slowly")

// waitBudget is how long the gateway may still wait for a body. Only waiting counts, not what
// the reader does in between. Its zero value has all the grace.
type waitBudget struct{ spent time.Duration }

// left is how long the next bytes may take.
func (p waitBudget) left() time.Duration { return bodyGrace - p.spent }

// after is the budget once n more bytes have come after some waiting.
func (p waitBudget) after(n int, waited time.Duration) waitBudget {
	return waitBudget{max(0, p.spent+waited-allowance(int64(n)))}
}

// allowance is how long a body of n bytes may take.
func allowance(n int64) time.Duration { return time.Duration(n) * time.Second / bodyRate }

// maxReplay is how much of a body that is handed on as it comes is kept, in bytes, so
// that an instance that ends before it began costs the caller nothing. It is part of
// streamMemory.
const maxReplay = 96 << 10

// errReleased is returned to an attempt that has released its call.
var errReleased = errors.New("gateway: the attempt has given the call back")

// replay lends a body to one attempt after the other, while all bytes that were read are kept.
type replay struct {
	// reading holds an element while an attempt reads the body. The first attempt makes it.
	reading chan struct{}

	mu         sync.Mutex
	holder     int    // the attempt that has the body now; 0 if none has
	kept       []byte // all that was read, unless spent
	overflowed bool   // more was read than is kept: no other attempt can have it
}

// lendTo lends the body to an attempt.
func (r *replay) lendTo(attempt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading == nil {
		r.reading = make(chan struct{}, 1)
	}
	r.holder = attempt
}

// giveBack takes the body from the attempt that has it; false if no other can have it.
func (r *replay) giveBack() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holder = 0
	return !r.overflowed
}

// awaitTurn waits until no earlier attempt reads; false if the attempt was over before that.
// The attempt that may read must call done.
func (r *replay) awaitTurn(over <-chan struct{}) bool {
	select {
	case r.reading <- struct{}{}:
		return true
	case <-over:
		return false
	}
}

func (r *replay) done() { <-r.reading }

// readFrom copies the kept bytes after the first offset. It fails with errReleased if the
// attempt no longer has the body.
func (r *replay) readFrom(attempt, offset int, p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.holder != attempt:
		return 0, errReleased
	case r.overflowed || offset >= len(r.kept):
		return 0, nil
	}
	return copy(p, r.kept[offset:]), nil
}

// store keeps what an attempt has read. What an attempt read that has given the body back
// meanwhile is kept in any case, because the next attempt has not seen it.
func (r *replay) store(attempt int, read []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.overflowed:
	case r.holder == attempt && len(r.kept)+len(read) > maxReplay:
		r.overflowed, r.kept = true, nil
	default:
		if len(r.kept)+len(read) > bodyChunk && cap(r.kept) < maxReplay {
			// Growing by doubling would take more than was counted.
			r.kept = append(make([]byte, 0, maxReplay), r.kept...)
		}
		r.kept = append(r.kept, read...)
	}
}
