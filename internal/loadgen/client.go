package loadgen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// Request is one call to make.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
	// Streamed bodies are sent piece by piece, without a length.
	Streamed bool
	// Resend lets net/http send the request again if it deems that safe when a
	// connection breaks that was used before, as it does for ordinary clients.
	Resend bool
}

// Outcome says how far a call came.
type Outcome int

const (
	// Answered says that the whole answer arrived.
	Answered Outcome = iota
	// NotSent says that the request could not be made.
	NotSent
	// TimedOut says that no whole answer arrived within the client's time.
	TimedOut
	// Broken says that the connection failed, or the answer broke off.
	Broken
	// CutOff says that the context ended while the call was under way.
	CutOff
)

// Call is the result of one request.
type Call struct {
	Outcome      Outcome
	Began, Ended time.Time
	// Status and Header are those of the answer, even if it was cut off; 0 and nil without an
	// answer.
	Status int
	Header http.Header
	// Body is as much of the answer as the client keeps.
	Body []byte
	// Err is why the whole answer did not arrive.
	Err error
	// Sent is how often the request was sent, and Reused says that its connection
	// had been used before.
	Sent   int
	Reused bool
}

// Took is how long the call took.
func (c Call) Took() time.Duration { return c.Ended.Sub(c.Began) }

// Cause is the innermost text of the error, which is without the addresses that would
// make every error a different one.
func (c Call) Cause() string {
	err := c.Err
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// NewTransport makes a transport that keeps connections for this many calls at a time.
// Its owner closes idle connections in the end.
func NewTransport(connections int) *http.Transport {
	return &http.Transport{
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
}

// Client makes calls.
type Client struct {
	Transport http.RoundTripper
	// Timeout bounds each call; 0 is no bound.
	Timeout time.Duration
	// Keep is how many bytes of an answer are kept. The rest is read and dropped.
	Keep int64
}

// Do makes one call and reads the answer to its end. Redirects are answers like any
// other.
func (c Client) Do(ctx context.Context, r Request) (call Call) {
	parent := ctx
	if c.Timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		ctx = timed
	}
	var wire wire
	call.Began = time.Now()
	defer func() {
		call.Ended = time.Now()
		call.Sent, call.Reused = int(wire.sent.Load()), wire.reused.Load()
	}()
	request, err := r.prepare(httptrace.WithClientTrace(ctx, wire.trace()))
	if err != nil {
		call.Outcome, call.Err = NotSent, err
		return call
	}
	call.Began = time.Now()
	if call.Err = c.exchange(request, &call); call.Err == nil {
		return call
	}
	switch {
	case parent.Err() != nil:
		call.Outcome = CutOff
	case ctx.Err() != nil:
		call.Outcome = TimedOut
	default:
		call.Outcome = Broken
	}
	return call
}

// wire is how a request was sent. The transport may still write to it when the call
// has ended.
type wire struct {
	sent   atomic.Int32
	reused atomic.Bool
}

func (w *wire) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn:      func(i httptrace.GotConnInfo) { w.reused.Store(i.Reused) },
		WroteHeaders: func() { w.sent.Add(1) },
	}
}

func (r Request) prepare(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	switch {
	case r.Streamed:
		request.Body, request.ContentLength, request.GetBody = inPieces(ctx, r.Body), -1, nil
	case !r.Resend:
		// A transport silently repeats a request without a body when a reused
		// connection breaks, and then a call that was lost would look like one
		// that was not. This body is of a type that cannot be read twice.
		request.Body, request.GetBody = io.NopCloser(bytes.NewReader(r.Body)), nil
	}
	return request, nil
}

// exchange makes one round trip and reads the answer to its end.
func (c Client) exchange(request *http.Request, call *Call) error {
	response, err := c.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	call.Status, call.Header = response.StatusCode, response.Header
	if c.Keep > 0 {
		if call.Body, err = io.ReadAll(io.LimitReader(response.Body, c.Keep)); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// Streamed bodies come in pieces of this many bytes, each after a pause.
const (
	piece = 32 << 10
	pause = 5 * time.Millisecond
)

// inPieces is a body that its caller makes as it goes, until ctx ends.
func inPieces(ctx context.Context, body []byte) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		for len(body) > 0 {
			if !sleep.For(ctx, pause) {
				_ = w.CloseWithError(ctx.Err())
				return
			}
			n := min(len(body), piece)
			// Nobody reads any more once the call has ended.
			if _, err := w.Write(body[:n]); err != nil {
				return
			}
			body = body[n:]
		}
		_ = w.Close()
	}()
	return r
}
