package httpadapter

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

var (
	errRepeat   = errors.New("the request was written already and is not repeated")
	errIdleDead = errors.New("the function closed the idle connection")
)

// exchange tracks one request: its connection, and whether the function may have
// seen a byte of it.
type exchange struct {
	// onEnd is called when the connection has ended, any number of times.
	onEnd func()

	mu        sync.Mutex
	on        *conn
	keptAlive bool  // on was used before
	wrote     bool  // a byte may have left
	sealed    bool  // no further byte may leave
	cause     error // how the connection broke
}

// attach puts the exchange on an idle connection; kept says that the connection had
// requests before. It refuses a second connection once the first had a byte.
func (e *exchange) attach(c *conn, kept bool) bool {
	e.mu.Lock()
	if e.wrote {
		e.sealed = true
	}
	ok := !e.sealed
	if ok {
		e.on, e.keptAlive = c, kept
	}
	e.mu.Unlock()
	c.setExchange(e)
	return ok
}

// beginWrite allows or refuses a write on c. first is true for the request's first write.
func (e *exchange) beginWrite(c *conn) (first bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sealed || e.on != c {
		return false, errRepeat
	}
	if e.wrote {
		return false, nil
	}
	if e.keptAlive && idleDead(c.Conn) {
		e.cause = errIdleDead
		return false, errIdleDead
	}
	e.wrote = true
	return true, nil
}

// undoBegin undoes a beginWrite whose write moved no byte.
func (e *exchange) undoBegin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote = false
}

// seal ends all writing and says whether the function may have seen a byte.
func (e *exchange) seal() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sealed = true
	return e.wrote
}

// reused says that the request was put on a connection that was used before.
func (e *exchange) reused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keptAlive
}

// broken is how the connection broke, or nil if the function did not break it.
func (e *exchange) broken() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// ended records that c ended; cause is nil if this side closed it.
func (e *exchange) ended(c *conn, cause error) {
	e.mu.Lock()
	current := e.on == c
	if current && e.cause == nil {
		e.cause = cause
	}
	e.mu.Unlock()
	if current {
		e.onEnd()
	}
}

// conn is a connection to the function. It carries one exchange at a time.
type conn struct {
	net.Conn

	mu     sync.Mutex
	ex     *exchange
	closed bool
}

func (c *conn) setExchange(e *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ex = e
}

func (c *conn) current() (ex *exchange, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ex, c.closed
}

// Write writes a part of the current request, unless that may not be written.
func (c *conn) Write(p []byte) (int, error) {
	e, _ := c.current()
	if e == nil {
		return 0, errRepeat
	}
	first, err := e.beginWrite(c)
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	if first && n == 0 {
		e.undoBegin()
		return 0, err
	}
	if _, closed := c.current(); closed {
		return n, err
	}
	// The function takes no more of the request. It may have answered
	// before it stopped, which a failed write would hide: so the rest is
	// discarded, and reading finds the answer or the error.
	return len(p), nil
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		e, closed := c.current()
		if e != nil && !closed {
			e.ended(c, err)
		}
	}
	return n, err
}

func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	e := c.ex
	c.mu.Unlock()
	if e != nil {
		e.ended(c, nil)
	}
	return c.Conn.Close()
}

// idleDead says whether the other side has closed an idle connection, or sent
// bytes unasked. It neither consumes bytes nor blocks, even while another
// goroutine reads.
func idleDead(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	alive := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		alive = err == syscall.EAGAIN || err == syscall.EINTR
	})
	return err != nil || !alive
}
