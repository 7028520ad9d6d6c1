package httpadapter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// streamWindow bounds what is in memory of the answer of a stream, in bytes. The connection has
// no bound of its own, so that a client that reads slowly holds up no other call.
const streamWindow = 64 << 10

// askTimeout bounds how long a function may take to say that it speaks HTTP/2.
const askTimeout = time.Second

// http2Client calls a function that speaks HTTP/2 without TLS and without being asked (h2c with
// prior knowledge). Its calls share connections.
type http2Client struct {
	addr string
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// dialing holds an element while a connection is made. Calls that come meanwhile wait for
	// it, and do not make one each.
	dialing chan struct{}

	mu    sync.Mutex // guards conns
	conns []*http2Conn
}

// invoke is Adapter.Invoke for a call that needs HTTP/2. Interim answers end here: gRPC has none.
func (h *http2Client) invoke(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	var begun atomic.Bool
	body := newHTTP2Body(call)
	req, err := h.request(ctx, call, body, &begun)
	if err != nil {
		return fmt.Errorf("%w: %w", adapter.ErrUnsendable, err)
	}
	c, err := h.reserve(ctx)
	switch {
	case errors.Is(err, errNoHTTP2):
		return fmt.Errorf("%w: %w", adapter.ErrUnsendable, err)
	case errors.Is(err, errSilent):
		return fmt.Errorf("%w: %w", adapter.ErrBadAnswer, err)
	case err != nil:
		return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
	}
	resp, err := c.client.RoundTrip(req)
	if err != nil {
		switch {
		case ctx.Err() != nil: // the request may still be written at this moment
		case !begun.Load() && c.lives(): // such as one with headers larger than the function takes
			return fmt.Errorf("%w: %w", adapter.ErrUnsendable, err)
		case isLeftBehind(err):
			return fmt.Errorf("%w: it closes the connection (GOAWAY)", adapter.ErrNotTaken)
		case !begun.Load() || isRefused(err):
			return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
		}
		return c.explain(ctx, call, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode > 599 {
		return fmt.Errorf("%w: status %d, want 200 to 599", adapter.ErrBadAnswer, resp.StatusCode)
	}
	if err := w.WriteHead(headOf(resp)); err != nil {
		return err
	}
	readErr, err := writeParts(w, resp.Body)
	switch {
	case readErr != nil:
		return c.explain(ctx, call, readErr)
	case err != nil:
		return err
	}
	return writeTrailers(w, adapter.FieldsOf(resp.Trailer))
}

// request is the request that call becomes. begun is set before a byte of it is written.
func (h *http2Client) request(ctx context.Context, call *adapter.Call, body io.ReadCloser, begun *atomic.Bool) (*http.Request, error) {
	target, err := url.ParseRequestURI(call.RequestURI)
	if err != nil {
		return nil, err
	}
	target.Scheme, target.Host = "http", h.addr
	header := adapter.HeaderOf(call.Header)
	keepEndToEnd(header)
	for _, name := range ownHeaders {
		delete(header, name)
	}
	header["Te"] = []string{"trailers"}
	if header["User-Agent"] == nil {
		header["User-Agent"] = nil // net/http would send its own
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) { begun.Store(true) },
	})
	req := &http.Request{
		Method: call.Method, URL: target, Host: call.Host, Header: header, Trailer: call.Trailer,
		ContentLength: call.ContentLength, Body: body,
	}
	return req.WithContext(ctx), nil
}

// headOf is the head of resp for the gateway. The length is a field of its own.
func headOf(resp *http.Response) adapter.Head {
	keepEndToEnd(resp.Header)
	delete(resp.Header, "Content-Length")
	return adapter.Head{
		Status: resp.StatusCode, Header: adapter.FieldsOf(resp.Header), ContentLength: resp.ContentLength,
		Trailer: slices.Sorted(maps.Keys(resp.Trailer)),
	}
}

// keepEndToEnd removes the headers about its connection from h.
func keepEndToEnd(h http.Header) {
	for _, field := range h["Connection"] {
		for name := range strings.SplitSeq(field, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// isRefused reports whether the function has refused a stream, which says that it has done
// nothing with it (RFC 9113, 8.7).
func isRefused(err error) bool {
	var reset http2.StreamError
	return errors.As(err, &reset) && reset.Code == http2.ErrCodeRefusedStream
}

// isLeftBehind reports whether the function closes the connection and has done nothing with the stream
// (RFC 9113, 6.8). Many do so at times, and go on. net/http says it in words only, which it has for no
// stream that the function may have seen.
func isLeftBehind(err error) bool { return strings.HasSuffix(err.Error(), "graceful shutdown GOAWAY") }

// reserve returns a connection that can have another call, and counts the call.
func (h *http2Client) reserve(ctx context.Context) (*http2Conn, error) {
	if c := h.reserveKept(); c != nil {
		return c, nil
	}
	select {
	case h.dialing <- struct{}{}:
		defer func() { <-h.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c := h.reserveKept(); c != nil {
		return c, nil
	}
	c, err := h.connect(ctx)
	if err == nil {
		err = c.client.Reserve()
	}
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
	return c, nil
}

// reserveKept returns a connection that is there, or nil.
func (h *http2Client) reserveKept() *http2Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = slices.DeleteFunc(h.conns, func(c *http2Conn) bool { return c.client.Err() != nil })
	for _, c := range h.conns {
		if c.client.Reserve() == nil {
			return c
		}
	}
	return nil
}

// isSpoken reports whether the function speaks HTTP/2. It makes no request.
func (h *http2Client) isSpoken(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := h.reserve(ctx)
	if err != nil {
		return false
	}
	c.client.Release()
	return true
}

// connect makes a connection, which closes itself when it was idle for a time.
func (h *http2Client) connect(ctx context.Context) (*http2Conn, error) {
	to, err := h.dial(ctx, "tcp", h.addr)
	if err != nil {
		return nil, err
	}
	c := &http2Conn{Conn: to, heard: make(chan struct{})}
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return c, nil },
		Protocols:              &only,
		DisableCompression:     true,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeadBytes,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow},
	}
	if c.client, err = transport.NewClientConn(ctx, "http", h.addr); err != nil {
		_ = to.Close()
		return nil, err
	}
	if err := c.awaitHTTP2(ctx); err != nil {
		_ = c.client.Close()
		return nil, err
	}
	return c, nil
}

// closeIdle closes the connections without calls. The others close themselves later.
func (h *http2Client) closeIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		if c.client.InFlight() == 0 {
			_ = c.client.Close()
		}
	}
}

var errNoHTTP2 = errors.New("it speaks no HTTP/2 without TLS (h2c), which calls with the Content-Type " + invocation.GRPCType + " need")

// errOnlyHTTP2 says that the function speaks HTTP/2 where HTTP/1.1 was asked for.
var errOnlyHTTP2 = errors.New("it speaks HTTP/2 without TLS (h2c), which only calls with the Content-Type " + invocation.GRPCType + " use")

// isSettings reports whether bytes begin with the frame that a server of HTTP/2 sends first.
func isSettings(b []byte) bool {
	const headerLen = 9 // length, type, flags, stream
	return len(b) >= headerLen && http2.FrameType(b[3]) == http2.FrameSettings && b[4] == 0 && string(b[5:headerLen]) == "\x00\x00\x00\x00"
}

// errSilent says that the function took a connection and sent nothing, as one that hangs does.
var errSilent = errors.New("it took a connection and sent nothing, where HTTP/2 without TLS (h2c) begins with a frame of the server")

// http2Conn is a connection to the function. It remembers what the client of net/http says in
// words only.
type http2Conn struct {
	net.Conn
	client *http.ClientConn
	// heard is closed when the function has sent something, or ended the connection.
	heard chan struct{}

	mu sync.Mutex // guards everything below
	// isOther says that what the function sent first was no HTTP/2.
	isOther bool
	// isSilent says that the function closed the connection and had sent nothing: it may have no
	// process any more behind its socket.
	isSilent bool
	// broken is how reading from the function ended; nil if it has not.
	broken error
}

func (c *http2Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.broken = err
	}
	select {
	case <-c.heard:
	default:
		c.isOther, c.isSilent = bytes.HasPrefix(p[:n], []byte("HTTP")), n == 0
		close(c.heard)
	}
	return n, err
}

// awaitHTTP2 waits for the function's first frame, before any call is written: what servers of
// HTTP/1.1 do with one by HTTP/2 differs, and may be lost with their connection.
func (c *http2Conn) awaitHTTP2(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, errSilent)
	defer cancel()
	select {
	case <-c.heard:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isOther:
		return errNoHTTP2
	case c.isSilent:
		return errSilent
	}
	return nil
}

// brokenBy is how reading from the function ended; nil if it has not.
func (c *http2Conn) brokenBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// lives reports whether the connection takes another call. One that the function is about to close
// does not.
func (c *http2Conn) lives() bool {
	if c.brokenBy() != nil || c.client.Reserve() != nil {
		return false
	}
	c.client.Release()
	return true
}

// explain is the error of a call of which the function may have seen a part, and whose answer
// could not be read because of err.
func (c *http2Conn) explain(ctx context.Context, call *adapter.Call, err error) error {
	if ctx.Err() != nil {
		return adapter.Ended(ctx, call)
	}
	var cut *cutError
	if errors.As(err, &cut) {
		return fmt.Errorf("%w: reading the call's body: %w", adapter.ErrFunctionLost, cut.cause)
	}
	broken := c.brokenBy()
	var reset http2.StreamError
	var writing *net.OpError
	switch {
	case errors.As(err, &reset) && reset.Code != http2.ErrCodeProtocol: // that is this end's, too
		return lost{fmt.Sprintf("it reset the stream before its answer was complete (%v)", reset.Code), err}
	case broken != nil && !errors.Is(broken, net.ErrClosed):
		return lostError(broken)
	case errors.As(err, &writing):
		return lostError(writing)
	case strings.Contains(err.Error(), "GOAWAY"):
		return lost{"it closes the connection (GOAWAY)", err}
	}
	return fmt.Errorf("%w: it is no HTTP/2: %w", adapter.ErrBadAnswer, err)
}

// http2Body is a call's body for the client of net/http, which waits for a Read to return unless
// Close ends it. So a goroutine of its own reads what cannot wait.
type http2Body struct {
	from  io.Reader
	start sync.Once
	*io.PipeReader
	to *io.PipeWriter
}

// cutError says that the call's body ended early.
type cutError struct{ cause error }

func (e *cutError) Error() string { return e.cause.Error() }

func newHTTP2Body(call *adapter.Call) io.ReadCloser {
	if call.ContentLength == 0 {
		return http.NoBody
	}
	if whole, ok := call.Body.(*bytes.Reader); ok {
		return io.NopCloser(whole)
	}
	b := &http2Body{from: call.Body}
	b.PipeReader, b.to = io.Pipe()
	return b
}

func (b *http2Body) Read(p []byte) (int, error) {
	b.start.Do(func() { go b.pump() })
	return b.PipeReader.Read(p)
}

func (b *http2Body) pump() {
	readErr, _ := writeParts(b.to, b.from)
	if readErr != nil {
		readErr = &cutError{readErr}
	}
	_ = b.to.CloseWithError(readErr)
}
