package logsink

import (
	"context"
	"io"
	"sync"
	"time"
)

const (
	// maxWaiting bounds the lines that wait, in bytes.
	maxWaiting = 1 << 20
	// flushWithin is how long Run waits at its end for lines to be written.
	flushWithin = time.Second
)

// Writer is an io.Writer that does not wait. It is for concurrent use.
type Writer struct {
	to io.Writer
	// wake holds an element if there may be something to write.
	wake chan struct{}

	mu      sync.Mutex
	waiting [][]byte
	bytes   int
	dropped uint64
	closing bool
}

// New makes a Writer that writes to another one while Run runs. It starts nothing.
func New(to io.Writer) *Writer {
	return &Writer{to: to, wake: make(chan struct{}, 1)}
}

// Write takes a line. It keeps none of the caller's memory.
func (w *Writer) Write(line []byte) (int, error) {
	if w.add(line) {
		w.rouse()
	}
	return len(line), nil
}

func (w *Writer) add(line []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes+len(line) > maxWaiting {
		w.dropped++
		return false
	}
	w.waiting = append(w.waiting, append([]byte(nil), line...))
	w.bytes += len(line)
	return true
}

func (w *Writer) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Dropped is how many lines were not written because too many waited.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Run writes lines until ctx ends, and then those that wait still, for a second at
// most. A write that hangs then is left behind: nothing can end it.
func (w *Writer) Run(ctx context.Context) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.write()
	}()
	<-ctx.Done()
	w.close()
	late := time.NewTimer(flushWithin)
	defer late.Stop()
	select {
	case <-written:
	case <-late.C:
	}
	return nil
}

func (w *Writer) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	w.rouse()
}

// write writes lines until it is to end and none waits.
func (w *Writer) write() {
	for {
		lines, closing := w.take()
		for _, line := range lines {
			// There is nobody to tell that the log cannot be written.
			_, _ = w.to.Write(line)
			w.done(len(line))
		}
		if len(lines) > 0 {
			continue
		}
		if closing {
			return
		}
		<-w.wake
	}
}

func (w *Writer) take() (lines [][]byte, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, w.waiting = w.waiting, nil
	return lines, w.closing
}

// done makes room for as much as was written.
func (w *Writer) done(bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= bytes
}
