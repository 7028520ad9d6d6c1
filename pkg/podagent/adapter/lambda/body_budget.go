package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/semaphore"
)

// DefaultBufferBytes is how many bytes of events and answers an Adapter holds at a time
// where no limit of memory says how many it may.
const DefaultBufferBytes = 128 << 20

// BufferBytes is how many bytes of events and answers an agent with a memory limit should
// hold at a time. The other half is for the rest: the program itself, bytes that arrive
// before the adapter reads them, headers, and garbage.
func BufferBytes(limit int64) int64 { return limit / 2 }

// firstRead is how much of a body of unknown length is read before room for the largest
// one is allocated.
const firstRead = 64 << 10

var errNoRoom = errors.New("other calls' bodies took all of the agent's memory for bodies, for as long as this one could wait")

// bodyBudget bounds the bytes of events, or of answers, in memory at a time. Events and answers
// have a budget each, because an event may have to wait for an answer (of a runtime client
// that asks for the next event when it has answered) and an answer must never wait for an
// event. A body reserves all its bytes before the first is read, so that no two bodies wait
// for each other; waiting bodies are served in order.
type bodyBudget struct {
	free *semaphore.Weighted
	// largest is the largest body that ever fits.
	largest int64
}

func newBodyBudget(bytes, largest int64) *bodyBudget {
	return &bodyBudget{free: semaphore.NewWeighted(bytes), largest: min(bytes, largest)}
}

// read reads a body of length bytes, or of an unknown number if length is -1, and waits for
// its share of the budget while ctx lasts. A body that can never fit is a *tooLargeError. The
// bytes stay reserved until they are released.
func (r *bodyBudget) read(ctx context.Context, from io.Reader, length int64) (*bufferedBody, error) {
	if length > r.largest {
		return nil, &tooLargeError{r.largest}
	}
	size := length
	if length < 0 {
		size = r.largest
	}
	if err := r.free.Acquire(ctx, size); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRoom, context.Cause(ctx))
	}
	h := &bufferedBody{budget: r, size: size}
	var err error
	if h.body, err = readBody(from, length, int(size)); err != nil {
		h.giveBack()
		return nil, err
	}
	return h, nil
}

func readBody(from io.Reader, length int64, most int) ([]byte, error) {
	body := make([]byte, most)
	if length < 0 {
		body = make([]byte, min(most, firstRead))
	}
	n, ended, err := fill(from, body)
	if err == nil && !ended && len(body) < most {
		body = append(make([]byte, 0, most), body...)[:most]
		var more int
		more, ended, err = fill(from, body[n:])
		n += more
	}
	if err == nil && !ended {
		var beyond int
		beyond, _, err = fill(from, make([]byte, 1))
		n += beyond
	}
	switch {
	case err != nil:
		return nil, err
	case length >= 0 && int64(n) < length:
		return nil, fmt.Errorf("%d bytes of %d: %w", n, length, io.ErrUnexpectedEOF)
	case length >= 0 && int64(n) > length:
		return nil, fmt.Errorf("more than the %d bytes that it should have", length)
	case n > most:
		return nil, &tooLargeError{int64(most)}
	}
	return body[:n], nil
}

// fill reads until to is full or the body has ended. Unlike io.ReadFull it distinguishes a
// complete body from one whose sender disconnected.
func fill(from io.Reader, to []byte) (n int, ended bool, err error) {
	for n < len(to) {
		more, err := from.Read(to[n:])
		n += more
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// bufferedBody is a body in memory. It is not safe for concurrent use, and may be nil.
type bufferedBody struct {
	body   []byte
	budget *bodyBudget
	size   int64
}

// bytes are the body, while it is held.
func (h *bufferedBody) bytes() []byte {
	if h == nil {
		return nil
	}
	return h.body
}

// giveBack gives the room of the body back, once.
func (h *bufferedBody) giveBack() {
	if h == nil || h.budget == nil {
		return
	}
	h.budget.free.Release(h.size)
	h.budget, h.body = nil, nil
}

// tooLargeError is a body that never fits.
type tooLargeError struct{ most int64 }

func (e *tooLargeError) Error() string {
	if e.most == maxEvent || e.most == maxAnswer {
		return fmt.Sprintf("a function of this runtime has bodies of at most %d bytes", e.most)
	}
	return fmt.Sprintf("the memory of this function's agent has room for bodies of at most %d bytes: raise agent.resources.limits.memory", e.most)
}
