package httpadapter

import (
	"errors"
	"net"
	"sync"
)

var (
	errRepeat   = errors.New("the request was written already and is not repeated")
	errIdleDead = errors.New("the function closed the idle connection")
)

// exchange is the account of one request: on which connection it is, and
// whether the function may have seen a byte of it.
type exchange struct {
	// onEnd is called when the connection has ended, any number of times.
	onEnd func()

	mu     sync.Mutex
	on     *conn
	kept   bool  // on was used before
	wrote  bool  // a byte may have left
	sealed bool  // no further byte may leave
	cause  error // how the connection broke
}

// use puts the exchange on a connection that is idle; kept says that it had
// requests before. It refuses a second connection once the first had a byte.
func (e *exchange) use(c *conn, kept bool) bool {
	e.mu.Lock()
	if e.wrote {
		e.sealed = true
	}
	ok := !e.sealed
	if ok {
		e.on, e.kept = c, kept
	}
	e.mu.Unlock()
	c.carry(e)
	return ok
}

// begin asks to write on c. It returns an error if nothing may be written.
func (e *exchange) begin(c *conn) (first bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sealed || e.on != c {
		return false, errRepeat
	}
	if e.wrote {
		return false, nil
	}
	if e.kept && idleDead(c.Conn) {
		e.cause = errIdleDead
		return false, errIdleDead
	}
	e.wrote = true
	return true, nil
}

// unwritten takes back a begin whose write moved no byte.
func (e *exchange) unwritten() {
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
	return e.kept
}

// broken is how the connection broke, or nil if the function did not break it.
func (e *exchange) broken() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// ended notes that c ended; cause is nil if this side closed it.
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

func (c *conn) carry(e *exchange) {
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
	first, err := e.begin(c)
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	if first && n == 0 {
		e.unwritten()
		return 0, err
	}
	if _, closed := c.current(); closed {
		return n, err
	}
	// The function takes no more of the request. It may have answered
	// before it stopped, which a failed write would hide: so the rest is
	// thrown away, and reading tells what there is to tell.
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
