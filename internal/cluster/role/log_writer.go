package role

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

// logWriter keeps code that logs from waiting for the reader of the log: a pipe that
// nobody reads, or a disk that hangs, would stop the program at its next line, and every
// call with it. Write never waits and never fails; Run writes lines whole and in their
// order. At most a megabyte of lines waits; lines beyond that are dropped and counted.
// It is for concurrent use.
type logWriter struct {
	to io.Writer
	// wake holds an element if there may be something to write.
	wake chan struct{}

	mu      sync.Mutex
	waiting [][]byte
	bytes   int
	dropped uint64
	closing bool
}

// newLogWriter makes a logWriter that writes to another one while Run runs. It starts nothing.
func newLogWriter(to io.Writer) *logWriter {
	return &logWriter{to: to, wake: make(chan struct{}, 1)}
}

// Write takes a line. It keeps none of the caller's memory.
func (w *logWriter) Write(line []byte) (int, error) {
	if w.add(line) {
		w.signal()
	}
	return len(line), nil
}

func (w *logWriter) add(line []byte) bool {
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

func (w *logWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Dropped is how many lines were not written because too many waited.
func (w *logWriter) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Run writes lines until ctx ends, and then the waiting ones, for at most a second. It
// abandons a write that hangs then, because nothing can end it.
func (w *logWriter) Run(ctx context.Context) error {
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

func (w *logWriter) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	w.signal()
}

// write writes lines until it is to end and none waits.
func (w *logWriter) write() {
	for {
		lines, closing := w.takeAll()
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

func (w *logWriter) takeAll() (lines [][]byte, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, w.waiting = w.waiting, nil
	return lines, w.closing
}

// done makes room for as much as was written.
func (w *logWriter) done(bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= bytes
}
