package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

const (
	// maxHeadBytes bounds the head of an answer, interim answers included.
	maxHeadBytes = 1 << 20
	// idleTimeout is how long an idle connection is kept. It is shorter than
	// what common servers keep theirs for (2s and up), so that mostly it is
	// not the function that closes, just as a call is being written.
	idleTimeout = time.Second
	// firstRetry and lastRetry bound the pause between two attempts to
	// connect to a function that is starting.
	firstRetry = time.Millisecond
	lastRetry  = 25 * time.Millisecond

	// dialTimeout bounds one attempt to connect, which net/http does not end
	// with the call that it is for.
	dialTimeout = 10 * time.Second

	copyBytes = 32 << 10
)

// Config says where the function is.
type Config struct {
	// Addr is the function's address, host:port.
	Addr string
	// Concurrency is how many calls run at a time, at least 1. As many
	// connections are kept alive.
	Concurrency int
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return fmt.Errorf("addr %q is not host:port: %w", c.Addr, err)
	}
	if c.Concurrency < 1 {
		return fmt.Errorf("concurrency is %d, must be at least 1", c.Concurrency)
	}
	return nil
}

// Adapter is an adapter.Adapter for one HTTP server.
type Adapter struct {
	addr      string
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	transport *http.Transport
	buffers   sync.Pool
}

var _ adapter.Adapter = (*Adapter)(nil)

// New is an Adapter for a valid cfg. It connects to nothing yet.
func New(cfg Config) *Adapter {
	a := &Adapter{
		addr:    cfg.Addr,
		dial:    (&net.Dialer{Timeout: dialTimeout}).DialContext,
		buffers: sync.Pool{New: func() any { return new([copyBytes]byte) }},
	}
	a.transport = &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := a.dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: c}, nil
		},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    cfg.Concurrency,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeadBytes,
	}
	return a
}

// Close closes the idle connections. Calls that run are not touched.
func (a *Adapter) Close() { a.transport.CloseIdleConnections() }

// WaitReady returns when the function accepts connections.
func (a *Adapter) WaitReady(ctx context.Context) error {
	retry := backoff.Backoff{First: firstRetry, Last: lastRetry}
	for {
		c, err := a.dial(ctx, "tcp", a.addr)
		if err == nil {
			return c.Close()
		}
		if !sleep.For(ctx, retry.Next()) {
			_, port, _ := net.SplitHostPort(a.addr)
			return adapter.NotReady(ctx, fmt.Sprintf(
				"nothing accepts connections at %s: the program must listen on $PORT, which is %s, on 127.0.0.1 or 0.0.0.0%s", a.addr, port, unlessRefused(err)))
		}
	}
}

// unlessRefused says how the last attempt to connect failed, unless it was refused, as
// it is where nothing listens.
func unlessRefused(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return ""
	}
	return fmt.Sprintf("; the last attempt failed: %v", err)
}

// Invoke sends call to the function as one request.
func (a *Adapter) Invoke(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	for {
		up := newUpload(call)
		ex := &exchange{onEnd: up.stop}
		resp, err := a.roundTrip(ctx, call, up, ex)
		if err == nil {
			err = a.relay(ctx, call, w, resp, ex, up)
			_ = resp.Body.Close()
			up.stop()
			return err
		}
		up.stop()
		if ex.seal() {
			return explain(ctx, call, ex, up, err)
		}
		// Only a kept-alive connection can have ended for a reason that
		// a new one does not share, so this ends when those are used up.
		if ctx.Err() == nil && ex.reused() && !up.started() {
			continue
		}
		return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
	}
}

// roundTrip returns the head of the answer. ex records what was written.
func (a *Adapter) roundTrip(ctx context.Context, call *adapter.Call, up *upload, ex *exchange) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			c, ok := info.Conn.(*conn)
			if !ok || !ex.attach(c, info.Reused) {
				cancel(errRepeat)
			}
		},
	})
	resp, err := a.transport.RoundTrip(a.request(ctx, call, up))
	if err != nil {
		cancel(err)
		return nil, err
	}
	resp.Body = &cancelOnClose{resp.Body, cancel}
	return resp, nil
}

// cancelOnClose ends a request's context when its answer is done with.
type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (c *cancelOnClose) Close() error {
	err := c.ReadCloser.Close()
	c.cancel(nil)
	return err
}

// relay passes an answer on to w.
func (a *Adapter) relay(ctx context.Context, call *adapter.Call, w adapter.ResultWriter, resp *http.Response, ex *exchange, up *upload) error {
	if resp.StatusCode < 200 || resp.StatusCode > 599 {
		return fmt.Errorf("%w: status %d, want 200 to 599", adapter.ErrBadAnswer, resp.StatusCode)
	}
	if err := w.WriteHead(head(resp)); err != nil {
		return err
	}
	buf := a.buffers.Get().(*[copyBytes]byte)
	defer a.buffers.Put(buf)
	for {
		n, err := resp.Body.Read(buf[:])
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return explain(ctx, call, ex, up, err)
		}
	}
}

// explain is the error of a request that was at least partly written.
func explain(ctx context.Context, call *adapter.Call, ex *exchange, up *upload, err error) error {
	if ctx.Err() != nil {
		return adapter.Ended(ctx, call)
	}
	if cause := up.failure(); cause != nil {
		return fmt.Errorf("%w: reading the call's body: %w", adapter.ErrFunctionLost, cause)
	}
	// The transport reports a connection that ended by errors of many
	// kinds, so what the connection itself saw decides.
	if cause := ex.broken(); cause != nil {
		return lostError(cause)
	}
	return fmt.Errorf("%w: it is no HTTP/1.1: %s", adapter.ErrBadAnswer, withoutPrefix(err))
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

// withoutPrefix is net/http's complaint about an answer, without the package's name.
func withoutPrefix(err error) string {
	text := strings.TrimPrefix(err.Error(), "net/http: HTTP/1.x transport connection broken: ")
	return strings.TrimPrefix(text, "net/http: ")
}
