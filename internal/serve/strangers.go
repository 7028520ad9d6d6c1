package serve

import (
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What strangers may take: connections on which no first message was accepted so far.
const (
	// maxStrangers is how many of them are open at a time. It leaves room for 1,000
	// agents behind one address that turn to another scheduler at once.
	maxStrangers = 1024
	// strangerStreams is how many streams of one of them gRPC's server serves at a time. More
	// wait, maxParked of all of them together, and others are refused. A connection of pulls
	// has one.
	strangerStreams = 16
	maxParked       = 1024
	// strangerBytes is how much is read from one of them while it has a stream open,
	// in bytes. What is behind that waits in the kernel.
	strangerBytes = 64 << 10
	// proveWithin is how long one of them is kept when others want its place: time
	// for the handshake and a first message.
	proveWithin = handshakeWithin + firstMessageTimeout
)

// strangerLimiter keeps count of strangers.
type strangerLimiter struct {
	// parked has a place for each stream that waits.
	parked chan struct{}
	closed prometheus.Counter

	mu    sync.Mutex
	count int
	from  map[string][]*peerConn // by address without port, the oldest first
}

func newStrangerLimiter(reg prometheus.Registerer) *strangerLimiter {
	return &strangerLimiter{
		parked: make(chan struct{}, maxParked), closed: registered(reg, strangersClosedTotal.New()), from: make(map[string][]*peerConn),
	}
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

// peerConn is one client's connection. While it is a stranger's it is not read faster
// than its streams end.
type peerConn struct {
	net.Conn
	limiter *strangerLimiter
	host    string
	since   time.Time
	// streams has a place for each stream of a stranger that is served; proven is
	// closed when it is none any more.
	streams chan struct{}
	proven  chan struct{}

	mu    sync.Mutex
	moved sync.Cond // when any of the following changed so that reading may go on
	ended bool
	live  int // streams of a stranger, also those that wait
	read  int // bytes since the last time when there was none
}

func newPeerConn(conn net.Conn, d *strangerLimiter, now time.Time) *peerConn {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		host = conn.RemoteAddr().String()
	}
	c := &peerConn{
		Conn: conn, limiter: d, host: host, since: now,
		streams: make(chan struct{}, strangerStreams), proven: make(chan struct{}),
	}
	c.moved.L = &c.mu
	return c
}

// Read implements net.Conn.
func (c *peerConn) Read(p []byte) (int, error) {
	if c.isProven() {
		return c.Conn.Read(p)
	}
	n, err := c.Conn.Read(p[:c.allowance(len(p))])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read += n
	return n, err
}

// allowance waits until something may be read, and returns how many bytes of want.
func (c *peerConn) allowance(want int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.isProven() && !c.ended && c.live > 0 && c.read >= strangerBytes {
		c.moved.Wait()
	}
	if c.isProven() || c.ended {
		return want
	}
	if c.live == 0 && c.read >= strangerBytes {
		c.read = 0
	}
	return min(want, strangerBytes-c.read)
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	c.limiter.release(c)
	c.mu.Lock()
	c.ended = true
	c.moved.Broadcast()
	c.mu.Unlock()
	return c.Conn.Close()
}

// prove says that what a client has said first was accepted.
func (c *peerConn) prove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isProven() {
		return
	}
	close(c.proven)
	c.moved.Broadcast()
	c.limiter.release(c)
}

func (c *peerConn) isProven() bool {
	select {
	case <-c.proven:
		return true
	default:
		return false
	}
}

// acquireStream waits until a stream may be served, and returns what to do when it has ended.
// late ends the wait.
func (c *peerConn) acquireStream(late <-chan time.Time) (leave func(), err error) {
	c.addStream()
	select {
	case c.streams <- struct{}{}:
		return func() { <-c.streams; c.removeStream() }, nil
	case <-c.proven:
		return c.removeStream, nil
	default:
	}
	select {
	case c.limiter.parked <- struct{}{}:
		defer func() { <-c.limiter.parked }()
	default:
		c.removeStream()
		return nil, status.Error(codes.ResourceExhausted, "too many streams of clients that have proven nothing wait: prove one first")
	}
	select {
	case c.streams <- struct{}{}:
		return func() { <-c.streams; c.removeStream() }, nil
	case <-c.proven:
		return c.removeStream, nil
	case <-late:
		c.removeStream()
		return nil, status.Errorf(codes.DeadlineExceeded, "no earlier stream of the connection was accepted or has ended within %v", firstMessageTimeout)
	}
}

func (c *peerConn) addStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live++
}

func (c *peerConn) removeStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live--; c.live == 0 {
		c.read = 0
		c.moved.Broadcast()
	}
}
