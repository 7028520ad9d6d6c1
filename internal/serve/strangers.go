package serve

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What strangers may take: connections on which no first message was accepted so far.
const (
	// maxStrangers is how many of them are open at a time. It leaves room for 1,000
	// agents behind one address that turn to another scheduler at once.
	maxStrangers = 1024
	// strangerBytes is how much is read from one of them while it has a stream open, in bytes.
	strangerBytes = 64 << 10
	// proveWithin is how long one of them is kept when others want its place: time
	// for the handshake and a first message.
	proveWithin = handshakeWithin + firstMessageTimeout
)

// strangerLimiter keeps count of strangers.
type strangerLimiter struct {
	closed prometheus.Counter

	mu    sync.Mutex
	count int
	from  map[string][]*peerConn // by address without port, the oldest first
}

func newStrangerLimiter(reg prometheus.Registerer) *strangerLimiter {
	return &strangerLimiter{closed: registered(reg, strangersClosedTotal.New()), from: make(map[string][]*peerConn)}
}

// admit lets a stranger in. If there are too many, it returns the connection to
// close, which may be the new one.
func (d *strangerLimiter) admit(c *peerConn) (surplus *peerConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count >= maxStrangers {
		surplus = d.victim(c)
		d.removeConn(surplus)
		d.closed.Inc()
	}
	if surplus != c {
		d.from[c.host] = append(d.from[c.host], c)
		d.count++
	}
	return surplus
}

// victim is who has to go for a new one: a stranger of the address with the most,
// so that one address cannot keep out the others. If its oldest had enough time, that
// one goes; else the newest, so that those who are about to prove themselves can.
func (d *strangerLimiter) victim(arriving *peerConn) *peerConn {
	most := arriving.host
	for host, strangers := range d.from {
		if len(strangers) > len(d.from[most]) {
			most = host
		}
	}
	strangers := d.from[most]
	oldest := strangers[0]
	switch {
	case arriving.since.Sub(oldest.since) > proveWithin:
		return oldest
	case most == arriving.host:
		return arriving
	}
	return strangers[len(strangers)-1]
}

// release says that a connection has ended, or is no stranger's any more.
func (d *strangerLimiter) release(c *peerConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeConn(c)
}

func (d *strangerLimiter) removeConn(c *peerConn) {
	strangers := d.from[c.host]
	for i, other := range strangers {
		if other != c {
			continue
		}
		d.count--
		if d.from[c.host] = append(strangers[:i], strangers[i+1:]...); len(strangers) == 1 {
			delete(d.from, c.host)
		}
		return
	}
}

// peerConn is one client's connection.
type peerConn struct {
	net.Conn
	limiter *strangerLimiter
	host    string
	since   time.Time
	proven  atomic.Bool // it is no stranger's any more
}

func newPeerConn(conn net.Conn, d *strangerLimiter, now time.Time) *peerConn {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		host = conn.RemoteAddr().String()
	}
	return &peerConn{Conn: conn, limiter: d, host: host, since: now}
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	c.limiter.release(c)
	return c.Conn.Close()
}

// prove says that what a client has said first was accepted.
func (c *peerConn) prove() {
	if c.proven.CompareAndSwap(false, true) {
		c.limiter.release(c)
	}
}
