package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"syscall"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// maxHeadBytes bounds the head of an answer, interim answers included, and maxTrailerBytes its
// trailers, which a gateway has no more room for.
const (
	maxHeadBytes    = 1 << 20
	maxTrailerBytes = 64 << 10
)

// exchange is one request on its connection, and the answer.
type exchange struct {
	request
	w    adapter.ResultWriter
	conn *conn
	// up is nil if the whole request went out at once.
	up *upload
}

// readAnswer passes the answer on to w. Whether the connection can have another call is the
// first result.
func (x *exchange) readAnswer(ctx context.Context) (reusable bool, err error) {
	h, err := x.readHead(ctx)
	switch {
	case err != nil:
		return false, err
	case h.Status == http.StatusSwitchingProtocols:
		return false, x.switchProtocols(ctx, h)
	case h.Status < 200 || h.Status > 599:
		return false, fmt.Errorf("%w: status %d, want 200 to 599", adapter.ErrBadAnswer, h.Status)
	}
	if err := x.w.WriteHead(h.Head); err != nil {
		return false, err
	}
	if err := x.relayBody(ctx, h); err != nil {
		return false, err
	}
	// Bytes behind the answer are none that anybody asked for.
	return !h.closes && x.conn.in.Buffered() == 0 && x.up.finished(), nil
}

// readHead reads the head of the answer, and passes on the interim ones before it. Some servers
// say 100 to every client with a body, which only one that waits for it understands.
func (x *exchange) readHead(ctx context.Context) (answerHead, error) {
	x.conn.limitHead()
	for {
		h, err := x.conn.readHead(x.call.Method)
		switch {
		case err != nil:
			return h, x.explain(ctx, err)
		case h.Status < 100 || h.Status >= 200 || h.Status == http.StatusSwitchingProtocols:
			x.conn.allowBody()
			return h, nil
		case h.Status == http.StatusContinue && !x.expects:
		default:
			if err := x.w.WriteHead(h.Head); err != nil {
				return h, err
			}
		}
	}
}

// readHead reads one head. What does not begin as one fails with its first line.
func (c *conn) readHead(method string) (answerHead, error) {
	c.block = c.block[:0]
	line, err := c.readLine()
	if err != nil {
		return answerHead{}, err
	}
	minor, status, err := parseStatus(line)
	if err != nil {
		return answerHead{}, err
	}
	fields, err := c.readFields()
	if err != nil {
		return answerHead{}, err
	}
	return parseHead(minor, status, fields, method)
}

// relayBody passes on the body, and the trailers behind it.
func (x *exchange) relayBody(ctx context.Context, h answerHead) error {
	in := x.conn.in
	switch {
	case h.chunked:
		if err := x.relay(ctx, httputil.NewChunkedReader(in)); err != nil {
			return err
		}
		return x.relayTrailers(ctx)
	case h.length < 0:
		return x.relay(ctx, in)
	case h.length == 0:
		return nil
	}
	body := io.LimitedReader{R: in, N: h.length}
	if err := x.relay(ctx, &body); err != nil || body.N == 0 {
		return err
	}
	return x.explain(ctx, io.ErrUnexpectedEOF)
}

// relayTrailers passes on the trailers that came, but for those that may be none.
func (x *exchange) relayTrailers(ctx context.Context) error {
	x.conn.limitTrailers()
	text, err := x.conn.readFields()
	if err != nil {
		return x.explain(ctx, err)
	}
	trailers, err := parseFields(text, nil)
	if err != nil {
		return x.explain(ctx, err)
	}
	return writeTrailers(x.w, trailers)
}

func writeTrailers(w adapter.ResultWriter, trailers invocation.Fields) error {
	trailers = slices.DeleteFunc(trailers, func(f invocation.Field) bool { return !mayBeTrailer(f.Name) })
	if len(trailers) == 0 {
		return nil
	}
	return w.WriteTrailer(trailers)
}

// switchProtocols passes on what either side sends in another protocol than HTTP, until the
// function ends its side. When the client ends its own, the function can say more.
func (x *exchange) switchProtocols(ctx context.Context, h answerHead) error {
	if x.upgrade == "" || !httpguts.HeaderValuesContainsToken([]string{x.upgrade}, h.upgrade) {
		return fmt.Errorf("%w: it switches to the protocol %q, the call asked for %q", adapter.ErrBadAnswer, h.upgrade, x.upgrade)
	}
	switched := h.Head
	switched.Upgrade, switched.ContentLength = h.upgrade, -1
	if err := x.w.WriteHead(switched); err != nil {
		return err
	}
	c, body := x.conn, x.call.Body
	x.up = startUpload(c, func(u *upload) { u.writeStream(c, body) })
	return x.relay(ctx, c.in)
}

// relay passes on what comes from the function, until it ends.
func (x *exchange) relay(ctx context.Context, from io.Reader) error {
	readErr, err := writeParts(x.w, from)
	if readErr != nil {
		return x.explain(ctx, readErr)
	}
	return err
}

// writeParts writes each part of a body as soon as it comes. It never closes the body, which
// would read that of an HTTP/1.1 answer to its end.
func writeParts(to io.Writer, body io.Reader) (readErr, writeErr error) {
	var buffer copyBuffer
	defer buffer.recycle()
	n := 0
	for {
		var err error
		p := buffer.next(n)
		n, err = body.Read(p)
		if n > 0 {
			if _, err := to.Write(p[:n]); err != nil {
				return nil, err
			}
		}
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
	}
}

// explain is the error of a request of which the function may have seen a part, and whose
// answer could not be read because of err.
func (x *exchange) explain(ctx context.Context, err error) error {
	if errors.Is(x.conn.broken, errOnlyHTTP2) {
		return fmt.Errorf("%w: %w", adapter.ErrUnsendable, errOnlyHTTP2)
	}
	if ctx.Err() != nil {
		return adapter.Ended(ctx, x.call)
	}
	if cause := x.up.cause(); cause != nil {
		return fmt.Errorf("%w: reading the call's body: %w", adapter.ErrFunctionLost, cause)
	}
	// An answer that ends in its middle is reported in many ways, so what the connection
	// itself saw decides.
	if cause := x.conn.broken; cause != nil {
		return lostError(cause)
	}
	if errors.Is(err, errHeadTooLarge) {
		return fmt.Errorf("%w: its head has more than %d bytes, or its trailers more than %d", adapter.ErrBadAnswer, maxHeadBytes, maxTrailerBytes)
	}
	return fmt.Errorf("%w: it is no HTTP/1.1: %w", adapter.ErrBadAnswer, err)
}

// lost is how a connection to the function ended before its answer did.
type lost struct {
	how   string
	cause error
}

func (l lost) Error() string   { return adapter.ErrFunctionLost.Error() + ": " + l.how }
func (l lost) Unwrap() []error { return []error{adapter.ErrFunctionLost, l.cause} }

func lostError(cause error) error {
	switch {
	case errors.Is(cause, io.EOF), errors.Is(cause, io.ErrUnexpectedEOF):
		return lost{"it closed the connection before its answer was complete", cause}
	case errors.Is(cause, syscall.ECONNRESET), errors.Is(cause, syscall.EPIPE):
		return lost{"it reset the connection before its answer was complete", cause}
	}
	return lost{"the connection to it broke before its answer was complete: " + cause.Error(), cause}
}
