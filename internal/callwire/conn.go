package callwire

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// pingAfter is how long the other side may be silent before it is asked whether it is
	// there, and pongWithin how long it may take to say so. A peer that is gone with its node
	// is noticed by the kernel sooner, if the connection has TCP keepalives.
	pingAfter  = 10 * time.Second
	pongWithin = 5 * time.Second
	// firstBuffer is the size of a reading buffer that has seen no large frame, keptBuffer that
	// of the largest one that is kept, and idleBuffer that of a connection that has been silent
	// for pingAfter: a gateway has thousands of those, which only ping. A call's window of body in
	// its frames fits into keptBuffer, also in the steps in which append lets a buffer grow.
	firstBuffer = 4 << 10
	keptBuffer  = InitialWindow * 3 / 2
	idleBuffer  = 128
)

var (
	// ErrSilent says that the other side of a connection did not answer a ping in time.
	ErrSilent = errors.New("callwire: the other side is silent")
	// ErrLate says that the first frame of a connection did not come in time.
	ErrLate = errors.New("callwire: the first frame did not come in time")
	// ErrClosed says that this side has closed the connection.
	ErrClosed = errors.New("callwire: the connection is closed")
)

// Conn is a connection that carries frames. One goroutine reads. Any goroutine writes, with
// Begin and Commit: it writes what others have appended meanwhile, too, so that frames of many
// calls share system calls.
type Conn struct {
	net net.Conn
	// accepted says that the other side dialled, so that it may be anybody.
	accepted bool
	// These are the reader's.
	limit   int    // bounds the payload of the next frame
	in      []byte // in[from:] was read and not returned
	from    int
	firstBy time.Time // when the first frame that Read returns must have come; zero once it has, or if it may be late
	armed   time.Time // when the read deadline was set
	asked   bool      // a ping is unanswered
	unknown func(Kind)

	mu      sync.Mutex
	room    sync.Cond // waits for a change of the following
	pending []byte    // to be written
	spare   []byte    // a buffer for the next pending
	writing bool      // a goroutine is writing
	shut    bool      // nothing more is to be written
	broken  error     // why nothing is written any more
	timed   time.Time // when the write deadline was set; the writing goroutine's
}

// NewConn makes the connection of a side that has dialled. It starts nothing. unknown is called
// by the reader for each frame that this release does not know; nil ignores them.
func NewConn(c net.Conn, unknown func(Kind)) *Conn {
	conn := &Conn{net: c, unknown: unknown}
	conn.limit = MaxFirst
	conn.room.L = &conn.mu
	return conn
}

// Accept makes the connection of a side that was dialled. As long as the other side has proven
// nothing, no frame may be longer than MaxFirst, until Trust. Read returns ErrLate if the first
// frame does not come within the given time. While much waits to be written, Read reads nothing,
// so that a peer that sends and does not read cannot make this side hold its answers: the other
// side must read without waiting for its own writes.
func Accept(c net.Conn, firstWithin time.Duration, unknown func(Kind)) *Conn {
	conn := NewConn(c, unknown)
	conn.accepted, conn.firstBy = true, time.Now().Add(firstWithin)
	return conn
}

// Trust says that the other side has proven who it is: from the next frame on, the payload may
// have MaxPayload bytes. Only the reader may call it.
func (c *Conn) Trust() { c.limit = MaxPayload }

// Close closes the connection at once; what is pending may be lost. Read returns ErrClosed.
func (c *Conn) Close() { c.breakWith(ErrClosed) }

// breakWith ends both sides for a reason; the first one counts. It does not hold the lock while
// it closes: TLS says goodbye, for which it may wait.
func (c *Conn) breakWith(why error) {
	c.mu.Lock()
	first := c.broken == nil
	if first {
		c.broken = why
		c.room.Broadcast()
	}
	c.mu.Unlock()
	if first {
		_ = c.net.Close()
	}
}

// HasWholeFrame reports whether Read would return without waiting.
func (c *Conn) HasWholeFrame() bool {
	for rest := c.in[c.from:]; ; {
		f, need, err := parseFrame(rest, c.limit)
		switch {
		case err != nil:
			return true
		case len(rest) < need:
			return false
		case f.Kind.isForCaller():
			return true
		}
		rest = rest[need:]
	}
}

// isForCaller reports whether Read returns frames of this kind.
func (k Kind) isForCaller() bool {
	return k >= KindHello && k < KindPing || k >= KindNode && k <= KindGiveUp
}

// Read returns the next frame. It answers pings, and asks a silent peer whether it is there.
func (c *Conn) Read() (Frame, error) {
	for {
		f, need, err := parseFrame(c.in[c.from:], c.limit)
		if err != nil {
			return Frame{}, err
		}
		if len(c.in)-c.from < need {
			if err := c.fill(need); err != nil {
				return Frame{}, err
			}
			continue
		}
		c.from += need
		switch {
		case f.Kind.isForCaller():
			c.came()
			return f, nil
		case f.Kind == KindPing:
			c.shrink() // the other side has asked first
			c.CommitLater(AppendFrame(c.Begin(), KindPong, 0, 0, nil))
			c.FlushLater()
		case f.Kind != KindPong && c.unknown != nil:
			c.unknown(f.Kind)
		}
	}
}

// came notes that a frame for the caller has come.
func (c *Conn) came() {
	if !c.firstBy.IsZero() {
		c.firstBy, c.armed = time.Time{}, time.Time{}
	}
	if !c.accepted && c.limit != MaxPayload {
		c.Trust()
	}
}

// fill reads more, so that a frame of need bytes has room in the buffer.
func (c *Conn) fill(need int) error {
	if c.accepted {
		c.awaitWriter()
	}
	c.makeRoom(need)
	for {
		c.arm()
		n, err := c.net.Read(c.in[len(c.in):cap(c.in)])
		if n > 0 {
			c.asked = false
			c.in = c.in[:len(c.in)+n]
			return nil
		}
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return c.readError(err)
		case !c.firstBy.IsZero():
			return ErrLate
		case c.asked:
			return ErrSilent
		default:
			c.asked = true
			c.shrink()
			c.CommitLater(AppendFrame(c.Begin(), KindPing, 0, 0, nil))
			c.FlushLater()
		}
	}
}

// makeRoom moves what was not returned, so that more of a frame of need bytes has room. For a frame
// that is larger than keptBuffer, room grows as the frame comes: the other side need not send what
// it announces.
func (c *Conn) makeRoom(need int) {
	rest := c.in[c.from:]
	now := min(need, keptBuffer)
	if len(rest) == cap(c.in) {
		now = min(need, max(keptBuffer, 2*len(rest)))
	}
	switch {
	case now > cap(c.in), cap(c.in) > keptBuffer && len(rest) == 0 && need <= firstBuffer:
		c.in = append(make([]byte, 0, max(firstBuffer, now)), rest...)
	case c.from > 0:
		c.in = c.in[:copy(c.in[:cap(c.in)], rest)]
	}
	c.from = 0
}

// arm sets the read deadline. It does so rarely while frames come.
func (c *Conn) arm() {
	now := time.Now()
	switch {
	case c.asked:
		c.armed = time.Time{}
		_ = c.net.SetReadDeadline(now.Add(pongWithin))
	case now.Sub(c.armed) <= pingAfter/4:
	case !c.firstBy.IsZero():
		c.armed = now
		_ = c.net.SetReadDeadline(c.firstBy)
	default:
		c.armed = now
		_ = c.net.SetReadDeadline(now.Add(pingAfter))
	}
}

// readError is the reason why nothing more can be read.
func (c *Conn) readError(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return c.broken
	}
	return fmt.Errorf("callwire: reading: %w", err)
}

// shrink drops the reading and writing buffers of a silent connection, as far as they hold
// nothing. A reader that waits needs some buffer.
func (c *Conn) shrink() {
	if c.from == len(c.in) && cap(c.in) > idleBuffer {
		c.in, c.from = make([]byte, 0, idleBuffer), 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = nil
	if len(c.pending) == 0 {
		c.pending = nil
	}
}
