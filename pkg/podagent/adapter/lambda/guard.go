package lambda

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/rawtcp"
)

const (
	// commonHead is the size of a request's head that any connection may send, in bytes, and
	// maxHead that of maxLarge connections at a time: the cause of an error, which is meant
	// for X-Ray and has up to 1 MiB, is a header.
	commonHead = 64 << 10
	maxHead    = 1<<20 + commonHead
	maxLarge   = 4
	// headTimeout is how long the head of a request may take.
	headTimeout = 10 * time.Second
	// extraConns is how many connections there may be beside two for each call: some
	// runtime clients poll from more threads than that.
	extraConns = 64
)

var errHeads = errors.New("lambda: too many requests with large heads at a time")

// handout is a call that was handed out on a connection.
type handout struct {
	id string
	at time.Time
	// promised says that the client keeps the connection until it has answered.
	promised bool
}

// conn is a connection of a runtime client.
type conn struct {
	net.Conn
	from *listener

	mu sync.Mutex
	// written is how many bytes were written to it.
	written int64
	// last is the call that was handed out on it, if nothing came since.
	last *handout
	// handling says that the head of a request is complete, and head is how many bytes
	// of it came so far. large says that it is one of maxLarge.
	handling, large, closed bool
	head                    int
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written += int64(n)
	return n, err
}

func (c *conn) bytesWritten() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written
}

// handedOut records a call that was handed out on the connection.
func (c *conn) handedOut(h *handout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = h
}

// handout is the call that was handed out, if nothing came since.
func (c *conn) handout() *handout {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && !c.mayRead(n) {
		return 0, errHeads
	}
	return n, err
}

// mayRead counts the bytes of a head.
func (c *conn) mayRead(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handling {
		return true
	}
	c.head += n
	if c.head > commonHead && !c.large && !c.closed {
		c.large = c.from.acquireLarge()
		return c.large
	}
	return true
}

// beginRequest returns the call that was handed out by the request before.
func (c *conn) beginRequest() (before *handout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handling = true
	before, c.last = c.last, nil
	return before
}

// endRequest gives up the request, whose head is kept for as long as it is handled.
func (c *conn) endRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handling, c.head = false, 0
	c.releaseLarge()
}

// releaseLarge is for the caller that holds the lock.
func (c *conn) releaseLarge() {
	if c.large {
		c.large = false
		c.from.large.Add(-1)
	}
}

func (c *conn) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.releaseLarge()
		c.from.open.Add(-1)
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// listener bounds the connections, and observes the writes to each. It closes a connection
// beyond the bound at once. The others read and write raw: the agent sleeps between a call and its answer.
type listener struct {
	net.Listener
	limit       func() int64
	open, large atomic.Int64
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Load() < l.limit() {
			l.open.Add(1)
			return &conn{Conn: rawtcp.Wrap(c), from: l}, nil
		}
		_ = c.Close()
	}
}

// acquireLarge takes one of maxLarge if it is free.
func (l *listener) acquireLarge() bool {
	if l.large.Add(1) <= maxLarge {
		return true
	}
	l.large.Add(-1)
	return false
}
