package gateway

import (
	"context"
	"errors"
	"sync"
)

// maxReplay is how much of a body that is handed on as it comes is kept, in bytes, so
// that an instance that ends before it began costs the caller nothing. It is part of
// streamMemory.
const maxReplay = 96 << 10

// errReleased is returned to an attempt that has given its call back.
var errReleased = errors.New("gateway: the attempt has given the call back")

// replay lends a body to one attempt after the other, for as long as all that was read
// of it is kept.
type replay struct {
	// turn holds an element while an attempt sends the body.
	turn chan struct{}

	mu     sync.Mutex
	holder int    // the attempt that has the body now; 0 if none has
	kept   []byte // all that was read, unless spent
	spent  bool   // more was read than is kept: no other attempt can have it
}

func newReplay() replay { return replay{turn: make(chan struct{}, 1)} }

// lend gives the body to an attempt.
func (r *replay) lend(attempt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holder = attempt
}

// giveBack takes the body from the attempt that has it; false if no other can have it.
func (r *replay) giveBack() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holder = 0
	return !r.spent
}

// await waits until no earlier attempt sends; false if ctx ended before that. The
// attempt that may send must call done.
func (r *replay) await(ctx context.Context) bool {
	select {
	case r.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *replay) done() { <-r.turn }

// from copies what is kept behind the first offset bytes. It fails with errReleased if
// the attempt does not have the body any more.
func (r *replay) from(attempt, offset int, p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.holder != attempt:
		return 0, errReleased
	case r.spent || offset >= len(r.kept):
		return 0, nil
	}
	return copy(p, r.kept[offset:]), nil
}

// keep notes what an attempt has read. What is read by one that has given the body back
// meanwhile is kept in any case, since the next one has not seen it.
func (r *replay) keep(attempt int, read []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.spent:
	case r.holder == attempt && len(r.kept)+len(read) > maxReplay:
		r.spent, r.kept = true, nil
	default:
		if len(r.kept)+len(read) > bodyChunk && cap(r.kept) < maxReplay {
			// Growing by doubling would take more than was counted.
			r.kept = append(make([]byte, 0, maxReplay), r.kept...)
		}
		r.kept = append(r.kept, read...)
	}
}
