package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// maxHeadBytes bounds the head of an answer, interim answers included.
const maxHeadBytes = 1 << 20

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
	resp, err := x.readHead(ctx)
	switch {
	case err != nil:
		return false, err
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return false, x.switchProtocols(ctx, resp)
	case resp.StatusCode < 200 || resp.StatusCode > 599:
		return false, fmt.Errorf("%w: status %d, want 200 to 599", adapter.ErrBadAnswer, resp.StatusCode)
	}
	if err := x.w.WriteHead(head(resp)); err != nil {
		return false, err
	}
	if err := x.relay(ctx, resp.Body); err != nil {
		return false, err
	}
	if err := writeTrailer(x.w, resp.Trailer); err != nil {
		return false, err
	}
	// Bytes behind the answer are none that anybody asked for.
	return !resp.Close && x.conn.in.Buffered() == 0 && x.up.finished(), nil
}

// readHead reads the head of the answer, and passes on the interim ones before it. Some servers
// say 100 to every client with a body, which only one that waits for it understands.
func (x *exchange) readHead(ctx context.Context) (*http.Response, error) {
	x.conn.limitHead()
	x.conn.asked.Method = x.call.Method
	for {
		resp, err := http.ReadResponse(x.conn.in, &x.conn.asked)
		if err == nil && resp.ProtoMajor != 1 {
			err = fmt.Errorf("its version is %q", resp.Proto)
		}
		if err != nil {
			return nil, x.explain(ctx, err)
		}
		switch status := resp.StatusCode; {
		case status < 100 || status >= 200 || status == http.StatusSwitchingProtocols:
			x.conn.allowBody()
			return resp, nil
		case status == http.StatusContinue && !x.expects:
		default:
			if err := x.w.WriteHead(head(resp)); err != nil {
				return nil, err
			}
		}
	}
}

// head is the head of resp for the gateway. The length is a field of its own.
func head(resp *http.Response) adapter.Head {
	keepEndToEnd(resp.Header)
	delete(resp.Header, "Content-Length")
	h := adapter.Head{Status: resp.StatusCode, Header: resp.Header, ContentLength: resp.ContentLength}
	if len(resp.Trailer) > 0 {
		h.Trailer = slices.Sorted(maps.Keys(resp.Trailer))
	}
	return h
}

// writeTrailer passes on the trailers that came, but for those that may be none.
func writeTrailer(w adapter.ResultWriter, trailer http.Header) error {
	maps.DeleteFunc(trailer, func(name string, values []string) bool {
		return len(values) == 0 || !httpguts.ValidTrailerHeader(name) || slices.Contains(hopByHop, name)
	})
	if len(trailer) == 0 {
		return nil
	}
	return w.WriteTrailer(trailer)
}

// switchProtocols passes on what either side sends in another protocol than HTTP, until the
// function ends its side. When the client ends its own, the function can say more.
func (x *exchange) switchProtocols(ctx context.Context, resp *http.Response) error {
	to := resp.Header.Get("Upgrade")
	if x.upgrade == "" || !httpguts.HeaderValuesContainsToken([]string{x.upgrade}, to) {
		return fmt.Errorf("%w: it switches to the protocol %q, the call asked for %q", adapter.ErrBadAnswer, to, x.upgrade)
	}
	switched := head(resp)
	switched.Upgrade, switched.ContentLength = to, -1
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
		return fmt.Errorf("%w: its head has more than %d bytes", adapter.ErrBadAnswer, maxHeadBytes)
	}
	return fmt.Errorf("%w: it is no HTTP/1.1: %s", adapter.ErrBadAnswer, strings.TrimPrefix(err.Error(), "net/http: "))
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
