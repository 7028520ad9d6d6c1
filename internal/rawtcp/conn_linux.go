package rawtcp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Wrap returns c with raw reads and writes if it is a TCP connection, and c otherwise.
func Wrap(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	conn := &Conn{TCPConn: tcp, raw: raw}
	conn.in.until.poller, conn.out.until.poller = tcp.SetReadDeadline, tcp.SetWriteDeadline
	conn.in.transfer, conn.out.transfer, conn.peek = conn.in.read, conn.out.write, conn.look
	return conn
}

// IsQuiet reports whether a connection has nothing to read: the other side has neither sent
// bytes nor closed it. It does not wait, and is true where that cannot be known. Nobody else may
// read meanwhile.
func IsQuiet(c net.Conn) bool {
	conn, ok := c.(*Conn)
	return !ok || conn.raw.Control(conn.peek) == nil && conn.quiet
}

// Conn is a TCP connection with raw reads and writes.
type Conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out direction
	// peek is look, made once, and quiet what it found.
	peek  func(fd uintptr)
	quiet bool
}

// look looks for something to read.
func (c *Conn) look(fd uintptr) {
	var b [1]byte
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b[0])), 1, syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	c.quiet = errno == syscall.EAGAIN || errno == syscall.EINTR
}

// direction is one direction of a connection.
type direction struct {
	mu sync.Mutex // held while data is transferred
	// transfer is read or write, made once, because a closure would be garbage of each call.
	transfer func(fd uintptr) bool
	p        []byte // what is left of the data, or of the room for it
	n        int    // how much was transferred
	failed   syscall.Errno
	until    deadline
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	d := &c.in
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(p)
	err := c.raw.Read(d.transfer)
	for d.until.goesOn(err) {
		err = c.raw.Read(d.transfer)
	}
	switch {
	case err != nil:
	case d.failed != 0:
		err = c.error("read", d.failed)
	case d.n == 0:
		err = io.EOF
	}
	return d.end(), err
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	d := &c.out
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(p)
	err := c.raw.Write(d.transfer)
	for d.until.goesOn(err) {
		err = c.raw.Write(d.transfer)
	}
	if err == nil && d.failed != 0 {
		err = c.error("write", d.failed)
	}
	return d.end(), err
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.in.until.want(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.out.until.want(t) }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.in.until.want(t), c.out.until.want(t))
}

func (d *direction) begin(p []byte) {
	d.p, d.n, d.failed = p, 0, 0
	d.until.begin()
}

func (d *direction) end() int {
	d.p = nil
	return d.n
}

// read reads once. It returns false if there is nothing to read yet.
func (d *direction) read(fd uintptr) bool {
	n, errno := call(syscall.SYS_READ, fd, d.p)
	if errno == syscall.EAGAIN {
		d.until.wait()
		return false
	}
	d.n, d.failed = n, errno
	return true
}

// write writes all of p. It returns false when the socket takes no more yet.
func (d *direction) write(fd uintptr) bool {
	for len(d.p) > 0 {
		n, errno := call(syscall.SYS_WRITE, fd, d.p)
		if errno == syscall.EAGAIN {
			d.until.wait()
			return false
		}
		if errno != 0 {
			d.failed = errno
			return true
		}
		d.n += n
		d.p = d.p[n:]
	}
	return true
}

// call transfers some of p, which is not empty.
func call(number, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch errno {
		case syscall.EINTR:
			continue
		case 0:
			return int(n), 0
		}
		return 0, errno
	}
}

// error is the error that package net would return.
func (c *Conn) error(op string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, errno)}
}

// ReadFrom implements io.ReaderFrom without the ways of net.TCPConn, which use the descriptor.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{c}, r) }

// WriteTo implements io.WriterTo.
func (c *Conn) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{c}) }

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn { return c.TCPConn }
