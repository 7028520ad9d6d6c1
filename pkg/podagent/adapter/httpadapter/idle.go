package httpadapter

import (
	"sync"
	"time"
)

// idleTimeout is how long an idle connection is kept. It is shorter than what common servers
// keep theirs for (2 s and up), so that mostly it is not the function that closes, just as a
// call is being written.
const idleTimeout = time.Second

// idleConns are the connections that wait for a call. There are no more than calls that ran at a
// time, because a call gets a new one only if none is idle.
type idleConns struct {
	mu    sync.Mutex // guards everything below
	conns []*conn    // the longest idle first
	// sweeper is nil while no connection is idle.
	sweeper *time.Timer
	closed  bool
}

// take returns the connection that was used last and can have another call, or nil.
func (i *idleConns) take() *conn {
	for {
		c := i.last()
		if c == nil || c.alive() {
			return c
		}
		c.close()
	}
}

func (i *idleConns) last() *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := len(i.conns)
	if n == 0 {
		return nil
	}
	c := i.conns[n-1]
	i.conns[n-1] = nil
	i.conns = i.conns[:n-1]
	return c
}

// put keeps a connection for the next call.
func (i *idleConns) put(c *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		c.close()
		return
	}
	c.kept, c.idleSince = true, time.Now()
	i.conns = append(i.conns, c)
	if i.sweeper == nil {
		i.sweeper = time.AfterFunc(idleTimeout, i.sweep)
	}
}

// sweep closes the connections that were idle for too long. One timer serves them all, which
// fires at most once in idleTimeout however many calls there are.
func (i *idleConns) sweep() {
	i.mu.Lock()
	defer i.mu.Unlock()
	now, old := time.Now(), 0
	for old < len(i.conns) && now.Sub(i.conns[old].idleSince) >= idleTimeout {
		i.conns[old].close()
		old++
	}
	left := copy(i.conns, i.conns[old:])
	clear(i.conns[left:])
	i.conns = i.conns[:left]
	if left == 0 || i.closed {
		i.sweeper = nil
		return
	}
	i.sweeper.Reset(idleTimeout - now.Sub(i.conns[0].idleSince))
}

// close closes the idle connections, and those that become idle later.
func (i *idleConns) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	for _, c := range i.conns {
		c.close()
	}
	i.conns = nil
	if i.sweeper != nil {
		i.sweeper.Stop()
	}
}
