package podagent

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// errBodyCut ends a body whose client or gateway broke it off.
var errBodyCut = errors.New("podagent: the request was broken off")

// traceOf is the id of the trace that a call is in; empty if it is in none.
func traceOf(h invocation.Fields) string {
	parts := strings.Split(h.Get("Traceparent"), "-")
	if len(parts) < 4 {
		return ""
	}
	return parts[1]
}

// outcome is the state of the function after an adapter's error.
func outcome(err error) core.Outcome {
	switch {
	case err == nil, errors.Is(err, adapter.ErrOtherProtocol):
		return core.Complete
	case errors.Is(err, adapter.ErrNotTaken), errors.Is(err, adapter.ErrTooLate), errors.Is(err, adapter.ErrBodyTooLarge),
		errors.Is(err, adapter.ErrUnsendable):
		return core.Untouched
	case errors.Is(err, adapter.ErrNotStarted):
		return core.NotStarted
	}
	return core.Broken
}

// maxErrorText bounds the text of an error in bytes. The last lines of a function's log fit.
const maxErrorText = 16 << 10

// errorText is the text of err. What a function wrote may be a part of it, however long and whatever
// its bytes.
func errorText(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "?")
}

// newCall makes the call from its message, but for the body. It shares no memory with the frame.
func newCall(m *callwire.Call, deadline time.Time) adapter.Call {
	call := adapter.Call{
		ID:             m.Invocation.String(),
		Attempt:        m.Attempt,
		Method:         m.Method,
		RequestURI:     m.RequestURI,
		Host:           m.Host,
		Header:         m.Header,
		ContentLength:  m.ContentLength,
		ExpectContinue: m.ExpectContinue,
		Upgrade:        m.Upgrade,
		Deadline:       deadline,
	}
	if len(m.Trailer) > 0 {
		call.Trailer = make(http.Header, len(m.Trailer))
		for _, name := range m.Trailer {
			call.Trailer[http.CanonicalHeaderKey(name)] = nil
		}
	}
	return call
}

// requestBody is a body that comes in parts.
type requestBody struct {
	in *callwire.Inflow
	// trailer has the announced trailers. The values come with the end of the body.
	trailer http.Header
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if errors.Is(err, io.EOF) && b.trailer != nil {
		for name, values := range adapter.HeaderOf(b.in.Trailer()) {
			if _, announced := b.trailer[name]; announced {
				b.trailer[name] = values
			}
		}
	}
	return n, err
}
