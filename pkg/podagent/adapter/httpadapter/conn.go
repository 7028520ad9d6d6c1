package httpadapter

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"math"
	"net"
	"time"

	"github.com/windlass-dev/windlass/internal/rawtcp"
)

// readerBytes is the size of a connection's read buffer. Most answers fit in it.
const readerBytes = 4 << 10

var errHeadTooLarge = errors.New("its head is too large")

// conn is a connection to the function. One call has it at a time. No goroutine belongs to
// it: an idle connection is looked at when a call is about to use it.
type conn struct {
	net net.Conn
	in  *bufio.Reader
	// kept says that the connection had a call before.
	kept bool
	// idleSince is when the last call left it.
	idleSince time.Time

	// heard says that the function has sent something that may be HTTP/1.1.
	heard bool
	// headLeft is how many more bytes may be read.
	headLeft int64
	// block is memory for the lines of a head.
	block []byte
	// broken is how reading from the function ended; nil if it has not.
	broken error
	// refused says that the function did not take the whole head of a request.
	refused bool

	// unwatch ends what watch began.
	unwatch func() bool
	// cut is close, kept here because a method value costs an allocation each time.
	cut func()
}

func newConn(to net.Conn) *conn {
	c := &conn{net: rawtcp.Wrap(to)}
	c.in = bufio.NewReaderSize((*connReader)(c), readerBytes)
	c.cut = c.close
	return c
}

// alive reports whether an idle connection can have another call: the function has neither
// closed it nor sent bytes that nobody asked for. It does not wait, and takes no bytes.
func (c *conn) alive() bool { return rawtcp.IsQuiet(c.net) }

// watch closes the connection when ctx ends, until unwatch is called. That is false if ctx
// has ended.
func (c *conn) watch(ctx context.Context) { c.unwatch = context.AfterFunc(ctx, c.cut) }

func (c *conn) close() { _ = c.net.Close() }

// closeWrite tells the function that nothing more comes.
func (c *conn) closeWrite() {
	if half, ok := c.net.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// readLine reads a line into block, and returns it without its end. It is valid until the next one.
func (c *conn) readLine() ([]byte, error) {
	for from := len(c.block); ; {
		part, err := c.in.ReadSlice('\n')
		c.block = append(c.block, part...)
		if err == nil {
			return bytes.TrimSuffix(c.block[from:len(c.block)-1], []byte("\r")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// readFields reads the lines of fields, up to the empty one that ends them.
func (c *conn) readFields() (string, error) {
	for c.block = c.block[:0]; ; {
		line, err := c.readLine()
		if err != nil {
			return "", err
		}
		if len(line) == 0 {
			break
		}
	}
	text := string(c.block)
	if cap(c.block) > maxKept {
		c.block = nil
	}
	return text, nil
}

// limitHead bounds what is read for the heads of the next answer until allowBody is called, and
// limitTrailers for the trailers.
func (c *conn) limitHead()     { c.headLeft = maxHeadBytes }
func (c *conn) limitTrailers() { c.headLeft = maxTrailerBytes }
func (c *conn) allowBody()     { c.headLeft = math.MaxInt64 }

// connReader is what a connection's buffer reads from.
type connReader conn

func (c *connReader) Read(p []byte) (int, error) {
	if c.headLeft <= 0 {
		return 0, errHeadTooLarge
	}
	if int64(len(p)) > c.headLeft {
		p = p[:c.headLeft]
	}
	n, err := c.net.Read(p)
	c.headLeft -= int64(n)
	if n > 0 && !c.heard {
		if c.heard = !isSettings(p[:n]); !c.heard {
			n, err = 0, errOnlyHTTP2
		}
	}
	if err != nil {
		c.broken = err
	}
	return n, err
}
