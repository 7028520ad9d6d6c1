package callwire

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// buffered are the ends of a connection that takes some bytes in each direction before a writer
// has to wait.
func buffered(size int) (net.Conn, net.Conn) {
	there, back := newDuct(size), newDuct(size)
	return &ductConn{out: there, in: back}, &ductConn{out: back, in: there}
}

// duct is one direction.
type duct struct {
	mu      sync.Mutex
	changed sync.Cond
	size    int
	held    []byte
	ended   bool // by the writer
	closed  bool // by the reader
	read    deadline
	write   deadline
}

// deadline is that of reads or writes.
type deadline struct {
	passed bool
	timer  *time.Timer
}

func newDuct(size int) *duct {
	d := &duct{size: size}
	d.changed.L = &d.mu
	return d
}

// set sets a deadline of the duct; zero is none.
func (d *duct) set(at *deadline, when time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.timer != nil {
		at.timer.Stop()
	}
	at.passed, at.timer = false, nil
	if when.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(when), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if at.timer == timer {
			at.passed = true
			d.changed.Broadcast()
		}
	})
	at.timer = timer
}

func (d *duct) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.held) == 0 && !d.ended && !d.closed && !d.read.passed {
		d.changed.Wait()
	}
	switch {
	case d.closed:
		return 0, net.ErrClosed
	case len(d.held) > 0:
		n := copy(p, d.held)
		d.held = d.held[:copy(d.held, d.held[n:])]
		d.changed.Broadcast()
		return n, nil
	case d.ended:
		return 0, io.EOF
	}
	return 0, os.ErrDeadlineExceeded
}

func (d *duct) Write(p []byte) (written int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(p) > 0 {
		switch room := min(len(p), d.size-len(d.held)); {
		case d.ended || d.closed:
			return written, io.ErrClosedPipe
		case d.write.passed:
			return written, os.ErrDeadlineExceeded
		case room == 0:
			d.changed.Wait()
		default:
			d.held = append(d.held, p[:room]...)
			p, written = p[room:], written+room
			d.changed.Broadcast()
		}
	}
	return written, nil
}

// end ends the duct at the side of its writer or its reader.
func (d *duct) end(side *bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*side = true
	d.changed.Broadcast()
}

// ductConn is one end of two ducts.
type ductConn struct {
	net.Conn
	out, in *duct
}

func (c *ductConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *ductConn) Write(p []byte) (int, error) { return c.out.Write(p) }

func (c *ductConn) SetReadDeadline(t time.Time) error  { c.in.set(&c.in.read, t); return nil }
func (c *ductConn) SetWriteDeadline(t time.Time) error { c.out.set(&c.out.write, t); return nil }

func (c *ductConn) CloseWrite() error { c.out.end(&c.out.ended); return nil }

func (c *ductConn) Close() error {
	c.SetReadDeadline(time.Time{})
	c.SetWriteDeadline(time.Time{})
	c.out.end(&c.out.ended)
	c.in.end(&c.in.closed)
	return nil
}
