package lambda

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/webguard"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// headClient is how a runtime client of Windlass names itself: by a word that its process
// makes up as it begins, the same with every request. Who names itself so is served alone
// from its first request on, so that nobody else whom the function can be made to ask for
// a URL gets an event. It also promises to keep the connection on which it asked for an
// event until it has answered that, so that its end is the end of the process. To such a
// client the end of the instance is 204 where it waits.
const headClient = "Windlass-Client"

const (
	// commonHead is the head of a request that any connection may send, in bytes, and
	// maxHead one that mostLarge of them may at a time: the cause of an error that
	// X-Ray would be told, of up to 1 MiB, comes as a header.
	commonHead = 64 << 10
	maxHead    = 1<<20 + commonHead
	mostLarge  = 4
	// headPatience is how long the head of a request may take.
	headPatience = 10 * time.Second
	// spareConns is how many connections there may be beside two for each call: some
	// runtime clients poll from more threads than that.
	spareConns = 64
)

var (
	errPresumedGone = errors.New("the function's process has ended, as it seems: all its connections to the Runtime API, which it keeps longer otherwise, broke before it answered")

	errHeads      = errors.New("lambda: too many requests with large heads at a time")
	errClientGone = errors.New("the function's process has ended: its connection to the Runtime API broke before it answered")
)

// admit tells why a request is not one of the function's runtime.
func (a *Adapter) admit(r *http.Request) *refusal {
	if !webguard.NamesThisMachine(r.Host) || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return &refusedStranger
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.asking {
		a.asking, a.client = true, r.Header.Get(headClient)
	}
	if a.client != "" && a.client != r.Header.Get(headClient) {
		return &refusedStranger
	}
	return nil
}

// guarded serves the function's runtime, and nobody else.
func (a *Adapter) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connKey{}).(*conn)
		if before := c.beginRequest(); before != nil {
			a.keptIdle(time.Since(before.at))
		}
		defer c.endRequest()
		if no := a.admit(r); no != nil {
			w.Header().Set("Connection", "close")
			no.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// clientGone ends a call whose runtime client kept the connection, until now.
func (a *Adapter) clientGone(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.breakOff(id, errClientGone)
}

// habit is how a runtime client that promises nothing treats its connections. One that
// asks for an event and answers it on the same connection keeps it open meanwhile, at
// least for as long as the longest of its calls so far: an earlier break is the end of its
// process, not that of an idle connection. Others, such as curl in a script, close it
// whenever they have the event, and are never suspected.
type habit struct {
	// kept is for how long a connection was idle on which more came after an event.
	kept time.Duration
	// suspect is the call whose connection broke too soon.
	suspect string
}

// connected says that the client lives.
func (a *Adapter) connected() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.habit.suspect = ""
}

// keptIdle takes note that a connection was kept.
func (a *Adapter) keptIdle(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.habit.kept = max(a.habit.kept, d)
}

// disconnected takes note that a connection ended, on which a call may have been handed
// out; left is how many there are still. Clients that run more calls at a time may close
// what they have too many of.
func (a *Adapter) disconnected(last *handout, left int64) {
	if last != nil && last.promised {
		a.clientGone(last.id)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if last != nil && a.machine.concurrency == 1 && time.Since(last.at) < a.habit.kept {
		a.habit.suspect = last.id
	}
	if id := a.habit.suspect; left == 0 && a.machine.calls[id] == running {
		a.habit.suspect = ""
		a.machine.giveUp(id, false) // should it answer after all, it is thanked for it
		a.end(id, outcome{err: fmt.Errorf("%w: %w", adapter.ErrFunctionLost, errPresumedGone)})
	}
}

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
	// written is how many bytes were written to it.
	written atomic.Int64
	// last is the call that was handed out on it, if nothing came since.
	last atomic.Pointer[handout]

	mu sync.Mutex
	// handling says that the head of a request is complete, and head is how many bytes
	// of it came so far. large says that it is one of mostLarge.
	handling, large, closed bool
	head                    int
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && !c.mayRead(n) {
		return 0, errHeads
	}
	return n, err
}

// mayRead counts what came of a head.
func (c *conn) mayRead(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handling {
		return true
	}
	c.head += n
	if c.head > commonHead && !c.large && !c.closed {
		c.large = c.from.takeLarge()
		return c.large
	}
	return true
}

// beginRequest returns the call that was handed out by the request before.
func (c *conn) beginRequest() (before *handout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handling = true
	return c.last.Swap(nil)
}

// endRequest gives up the request, whose head is kept for as long as it is handled.
func (c *conn) endRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handling, c.head = false, 0
	c.giveLargeBack()
}

// giveLargeBack is for the caller that holds the lock.
func (c *conn) giveLargeBack() {
	if c.large {
		c.large = false
		c.from.large.Add(-1)
	}
}

func (c *conn) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.giveLargeBack()
		c.from.open.Add(-1)
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// listener bounds the connections, and knows what is written to each. One too many is
// closed at once.
type listener struct {
	net.Listener
	most        func() int64
	open, large atomic.Int64
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Load() < l.most() {
			l.open.Add(1)
			return &conn{Conn: c, from: l}, nil
		}
		_ = c.Close()
	}
}

// takeLarge takes one of mostLarge if it is free.
func (l *listener) takeLarge() bool {
	if l.large.Add(1) <= mostLarge {
		return true
	}
	l.large.Add(-1)
	return false
}
