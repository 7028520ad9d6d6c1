package podagent

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// wholeBody is the largest body, or part of one, that is sent in one message, in
// bytes.
const wholeBody = 64 << 10

// resultWriter sends an answer to the gateway: in one message if its length is
// known to be small, and otherwise as it comes. What cannot be sent is dropped, so
// that the function comes to its end and can be used again.
type resultWriter struct {
	begun time.Time
	// begunAfter is how long after the claim that was; 0 if there was none.
	begunAfter time.Duration

	cold   bool
	isHead bool // answers a HEAD request, whose Content-Length has no body
	// stream is set from the beginning, or once open was called, by the first message at
	// the latest; open is nil afterwards. opening is a lock that guards open, and stream
	// until open is nil. It holds an element while it is free: taking it may take as long
	// as opening the stream.
	opening chan struct{}
	stream  attemptStream
	open    func() error
	// lost says that the gateway does not take the result any more, and unreached that it
	// could not be reached at all.
	lost      atomic.Bool
	unreached bool

	// held is the head of a small answer that is being collected; nil before the
	// head came and after it was sent.
	held *agentwire.ResultHead
	body []byte
	sent bool
}

func (cs *calls) newResult(method string) *resultWriter {
	w := &resultWriter{
		begun: time.Now(), cold: !cs.served.Swap(true), isHead: method == http.MethodHead,
		opening: make(chan struct{}, 1),
	}
	w.opening <- struct{}{}
	return w
}

// WriteHead implements adapter.ResultWriter. The protocol with gateways has no place for interim
// answers, trailers and upgrades: the first two end here and in WriteTrailer, and newCall asks no
// function for an upgrade.
func (w *resultWriter) WriteHead(h adapter.Head) error {
	if h.Status < http.StatusOK {
		return nil
	}
	head := &agentwire.ResultHead{
		Status:        int32(h.Status),
		Headers:       make([]*agentwire.Header, 0, len(h.Header)),
		Cold:          w.cold,
		FunctionError: h.FunctionError,
	}
	if h.ContentLength >= 0 {
		head.ContentLength = &h.ContentLength
	}
	for name, values := range h.Header {
		for _, value := range values {
			head.Headers = append(head.Headers, &agentwire.Header{Name: name, Value: []byte(value)})
		}
	}
	if w.isHead || h.Status == http.StatusNoContent || h.Status == http.StatusNotModified ||
		h.ContentLength >= 0 && h.ContentLength <= wholeBody {
		w.held = head
		return nil
	}
	w.sendHead(head)
	return nil
}

func (w *resultWriter) sendHead(head *agentwire.ResultHead) {
	head.BegunAfterNs, head.ExecNs = int64(w.begunAfter), int64(time.Since(w.begun))
	w.sent = true
	w.sendToGateway(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Head{Head: head}})
}

// Write implements adapter.ResultWriter.
func (w *resultWriter) Write(p []byte) (int, error) {
	if w.held != nil {
		if len(w.body)+len(p) <= wholeBody {
			w.body = append(w.body, p...)
			return len(p), nil
		}
		// More than was announced.
		held, body := w.held, w.body
		w.held, w.body = nil, nil
		w.sendHead(held)
		w.sendBody(body)
	}
	w.sendBody(p)
	return len(p), nil
}

// WriteTrailer implements adapter.ResultWriter.
func (w *resultWriter) WriteTrailer(http.Header) error { return nil }

func (w *resultWriter) sendBody(p []byte) {
	for part := range slices.Chunk(p, wholeBody) {
		w.sendToGateway(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Body{Body: part}})
	}
}

// sendEnd sends the rest of the answer, or the failure, and closes the stream.
func (w *resultWriter) sendEnd(err error) {
	switch {
	case err == nil && w.held != nil:
		w.held.Whole, w.held.WholeBody = true, w.body
		w.sendHead(w.held)
	case err == nil && w.sent:
		w.sendToGateway(w.endOf(nil))
	case err == nil:
		w.sendToGateway(w.endOf(&agentwire.Failure{Kind: agentwire.Failure_KIND_BAD_ANSWER, Detail: "the function gave no answer"}))
	case errors.Is(err, adapter.ErrNotStarted) && !w.sent:
		w.sendToGateway(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Release{Release: &agentwire.Release{Reason: err.Error()}}})
	default:
		w.sendToGateway(w.endOf(failure(err)))
	}
	if w.stream != nil {
		_ = w.stream.CloseSend()
	}
}

func (w *resultWriter) endOf(f *agentwire.Failure) *agentwire.AttemptRequest {
	return &agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_End{End: &agentwire.ResultEnd{
		Failure: f, ExecNs: int64(time.Since(w.begun)),
	}}}
}

func failure(err error) *agentwire.Failure {
	kind := agentwire.Failure_KIND_FUNCTION_LOST
	switch {
	case errors.Is(err, adapter.ErrTimedOut):
		kind = agentwire.Failure_KIND_TIMED_OUT
	case errors.Is(err, adapter.ErrBodyTooLarge):
		kind = agentwire.Failure_KIND_BODY_TOO_LARGE
	case errors.Is(err, adapter.ErrBadAnswer):
		kind = agentwire.Failure_KIND_BAD_ANSWER
	}
	return &agentwire.Failure{Kind: kind, Detail: err.Error()}
}

// openOnce opens the stream unless that was done.
func (w *resultWriter) openOnce() {
	<-w.opening
	defer func() { w.opening <- struct{}{} }()
	if w.open == nil {
		return
	}
	open := w.open
	w.open = nil
	if open() != nil {
		w.unreached = true
		w.lost.Store(true)
	}
}

// opened reports whether openOnce was called.
func (w *resultWriter) opened() bool {
	<-w.opening
	defer func() { w.opening <- struct{}{} }()
	return w.open == nil
}

// sendToGateway sends a message, unless the gateway is lost. If the gateway has ended the
// stream, receiveReplies sees its reason.
func (w *resultWriter) sendToGateway(msg *agentwire.AttemptRequest) {
	w.openOnce()
	if !w.lost.Load() && w.stream.Send(msg) != nil {
		w.lost.Store(true)
	}
}
