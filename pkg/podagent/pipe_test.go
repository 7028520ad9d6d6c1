package podagent

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// newPipe is a connection that needs no network, so that it works under testing/synctest. Unlike
// net.Pipe it has buffers, and sides that end one by one, as TCP has.
func newPipe() (net.Conn, net.Conn) {
	there, back := newStream(), newStream()
	return &pipeEnd{in: back, out: there}, &pipeEnd{in: there, out: back}
}

// pipeEnd is one end of a pipe.
type pipeEnd struct {
	net.Conn // the rest is not used
	in, out  *stream
}

func (p *pipeEnd) Read(b []byte) (int, error)         { return p.in.read(b) }
func (p *pipeEnd) Write(b []byte) (int, error)        { return p.out.write(b) }
func (p *pipeEnd) SetReadDeadline(t time.Time) error  { p.in.setDeadline(t); return nil }
func (p *pipeEnd) SetWriteDeadline(t time.Time) error { return nil }
func (p *pipeEnd) CloseWrite() error                  { p.out.end(io.EOF); return nil }

func (p *pipeEnd) Close() error {
	p.out.end(io.EOF)
	p.in.abort(net.ErrClosed)
	return nil
}

// streamBuffer is how much one direction of a pipe holds, as the buffers of sockets do.
const streamBuffer = 128 << 10

// stream is one direction of a pipe.
type stream struct {
	mu       sync.Mutex
	changed  *sync.Cond
	held     []byte
	ended    error // what read returns behind held
	aborted  error // nobody reads any more
	deadline time.Time
	timer    *time.Timer
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.held) == 0 && s.ended == nil && s.aborted == nil {
		if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		s.changed.Wait()
	}
	switch {
	case s.aborted != nil:
		return 0, s.aborted
	case len(s.held) == 0:
		return 0, s.ended
	}
	n := copy(b, s.held)
	s.held = s.held[n:]
	s.changed.Broadcast()
	return n, nil
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.held) >= streamBuffer && s.ended == nil && s.aborted == nil {
		s.changed.Wait()
	}
	if s.ended != nil || s.aborted != nil {
		return 0, errors.New("the pipe is closed")
	}
	s.held = append(s.held, b...)
	s.changed.Broadcast()
	return len(b), nil
}

func (s *stream) setDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(time.Until(t), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
}

func (s *stream) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = why
		s.changed.Broadcast()
	}
}

func (s *stream) abort(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborted = why
	if s.timer != nil {
		s.timer.Stop()
	}
	s.changed.Broadcast()
}
