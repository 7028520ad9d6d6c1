package podagent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// answer is an adapter.ResultWriter that sends the answer to the gateway: in one frame if its
// length is known to be small, and otherwise as it comes. What cannot be sent is dropped, so that
// the function comes to its end and can be used again.
type answer struct {
	at     *attempt
	begun  time.Time
	cold   bool
	isHead bool // answers a HEAD request, whose Content-Length has no body

	// head is the head of a small answer that is being collected, with body, while held is set.
	held bool
	head callwire.Head
	body []byte
	// sent says that the head was sent.
	sent    bool
	trailer []callwire.Field
	// broken is why a part of the body was not sent although the gateway is there.
	broken error

	// err is how the call ended, and exec how long the function took; 0 if it saw nothing of it.
	err  error
	exec time.Duration
}

func (w *answer) begin(at *attempt, cold bool) {
	w.at, w.begun, w.cold, w.isHead = at, time.Now(), cold, at.call.Method == http.MethodHead
}

// WriteHead implements adapter.ResultWriter.
func (w *answer) WriteHead(h adapter.Head) error {
	w.head = callwire.Head{
		Status:        h.Status,
		Upgrade:       h.Upgrade,
		Header:        h.Header,
		ContentLength: h.ContentLength,
		Trailer:       h.Trailer,
		FunctionError: h.FunctionError,
		Cold:          w.cold,
	}
	switch {
	case h.Status < http.StatusOK && h.Status != http.StatusSwitchingProtocols:
		w.sendHead()
	case w.isHead || h.Status == http.StatusNoContent || h.Status == http.StatusNotModified ||
		h.ContentLength >= 0 && h.ContentLength <= callwire.WholeBody:
		w.held = true
	default:
		w.sendHead()
		w.sent = true
	}
	return nil
}

// sendHead sends the head in a frame of its own.
func (w *answer) sendHead() {
	w.stamp()
	if !w.at.lost.Load() {
		frames := w.at.conn.frames
		frames.Commit(w.head.Append(frames.Begin(), w.at.wire))
	}
}

// stamp sets the times of the head.
func (w *answer) stamp() {
	w.head.BegunAfter, w.head.Exec, w.head.CoreWait = w.begun.Sub(w.at.since), time.Since(w.begun), w.at.coreWait
}

// Write implements adapter.ResultWriter.
func (w *answer) Write(p []byte) (int, error) {
	if w.held && len(w.body)+len(p) <= callwire.WholeBody {
		w.body = append(w.body, p...)
		return len(p), nil
	}
	w.letGo()
	w.sendBody(p)
	return len(p), nil
}

// letGo sends what is held: the answer is longer than announced, or has trailers.
func (w *answer) letGo() {
	if !w.held {
		return
	}
	w.held, w.sent = false, true
	w.sendHead()
	w.sendBody(w.body)
	w.body = nil
}

func (w *answer) sendBody(p []byte) {
	if len(p) == 0 || w.broken != nil || w.at.lost.Load() {
		return
	}
	_, w.broken = w.at.outflow().Write(p)
}

// WriteTrailer implements adapter.ResultWriter.
func (w *answer) WriteTrailer(trailer invocation.Fields) error {
	if len(trailer) > 0 {
		w.letGo()
		w.trailer = trailer
	}
	return nil
}

// end notes how the call ended, and returns how long the function took. Until the function sees the
// call, it is the client that takes its time.
func (w *answer) end(err error) time.Duration {
	w.err, w.exec = err, time.Since(w.begun)
	if o := outcome(err); o == core.Untouched || o == core.NotStarted {
		w.exec = 0
	}
	switch {
	case err != nil || w.broken == nil:
	case errors.Is(w.broken, context.DeadlineExceeded):
		w.err = fmt.Errorf("%w: the client did not take the answer", adapter.ErrTimedOut)
	default:
		w.err = w.broken
	}
	return w.exec
}

// appendLast appends the last frame of the attempt.
func (w *answer) appendLast(b []byte, call uint32, keeps bool) []byte {
	end := callwire.End{Trailer: w.trailer, Exec: w.exec, Keeps: keeps}
	switch {
	case w.err == nil && w.held:
		w.stamp()
		w.head.Whole, w.head.Body, w.head.Keeps = true, w.body, keeps
		return w.head.Append(b, call)
	case w.err == nil && w.sent:
	case w.err == nil:
		end.Failure, end.Detail = callwire.FailureBadAnswer, "the function gave no answer"
	case (errors.Is(w.err, adapter.ErrNotStarted) || errors.Is(w.err, adapter.ErrNotTaken)) && !w.sent:
		release := callwire.Release{Reason: errorText(w.err), Keeps: keeps}
		return release.Append(b, call)
	default:
		end.Trailer, end.Failure, end.Detail = nil, failure(w.err), errorText(w.err)
	}
	return end.Append(b, call)
}

func failure(err error) callwire.FailureKind {
	switch {
	case errors.Is(err, adapter.ErrTimedOut):
		return callwire.FailureTimedOut
	case errors.Is(err, adapter.ErrTooLate):
		return callwire.FailureTooLate
	case errors.Is(err, adapter.ErrBodyTooLarge):
		return callwire.FailureBodyTooLarge
	case errors.Is(err, adapter.ErrUnsendable):
		return callwire.FailureUnsendable
	case errors.Is(err, adapter.ErrBadAnswer), errors.Is(err, adapter.ErrOtherProtocol):
		return callwire.FailureBadAnswer
	}
	return callwire.FailureFunctionLost
}
