package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// maxHeadBytes bounds the head of an answer, interim answers included.
const maxHeadBytes = 1 << 20

// exchange is one request on its connection, and the answer.
type exchange struct {
	call *adapter.Call
	w    adapter.ResultWriter
	conn *conn
	// up is nil if the whole request went out at once.
	up *upload
}

// readAnswer passes the answer on to w. Whether the connection can have another call is the
// first result.
func (x *exchange) readAnswer(ctx context.Context) (reusable bool, err error) {
	resp, err := x.readHead()
	if err != nil {
		return false, x.explain(ctx, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 599 {
		return false, fmt.Errorf("%w: status %d, want 200 to 599", adapter.ErrBadAnswer, resp.StatusCode)
	}
	if err := x.w.WriteHead(head(resp)); err != nil {
		return false, err
	}
	if err := x.relay(ctx, resp.Body); err != nil {
		return false, err
	}
	// Bytes behind the answer are none that anybody asked for.
	return !resp.Close && x.conn.in.Buffered() == 0 && x.up.finished(), nil
}

// readHead reads the head of the answer. Interim answers are skipped, but 101, behind which is
// no HTTP.
func (x *exchange) readHead() (*http.Response, error) {
	x.conn.limitHead()
	x.conn.asked.Method = x.call.Method
	for {
		resp, err := http.ReadResponse(x.conn.in, &x.conn.asked)
		if err != nil {
			return nil, err
		}
		if resp.ProtoMajor != 1 {
			return nil, fmt.Errorf("its version is %q", resp.Proto)
		}
		if resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
			x.conn.allowBody()
			return resp, nil
		}
	}
}

// head is the head of resp for the gateway. The length is a field of its own.
func head(resp *http.Response) adapter.Head {
	keepEndToEnd(resp.Header)
	delete(resp.Header, "Content-Length")
	return adapter.Head{Status: resp.StatusCode, Header: resp.Header, ContentLength: resp.ContentLength}
}

// relay writes each part of the body as soon as it comes. It never closes the body, which
// would read it to its end.
func (x *exchange) relay(ctx context.Context, body io.Reader) error {
	var buffer copyBuffer
	defer buffer.recycle()
	n := 0
	for {
		var err error
		p := buffer.next(n)
		n, err = body.Read(p)
		if n > 0 {
			if _, werr := x.w.Write(p[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return x.explain(ctx, err)
		}
	}
}

// explain is the error of a request of which the function may have seen a part, and whose
// answer could not be read because of err.
func (x *exchange) explain(ctx context.Context, err error) error {
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
