package podagent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// traceOf is the id of the trace that a call is in; empty if it is in none.
func traceOf(h http.Header) string {
	parts := strings.Split(h.Get("Traceparent"), "-")
	if len(parts) < 4 {
		return ""
	}
	return parts[1]
}

// outcome is the state of the function after an adapter's error.
func outcome(err error) core.Outcome {
	switch {
	case err == nil, errors.Is(err, adapter.ErrBodyTooLarge):
		// The function is as it was.
		return core.Complete
	case errors.Is(err, adapter.ErrNotStarted):
		return core.NotStarted
	}
	return core.Broken
}

// newCall makes the call from a grant. receiveReplies feeds its body unless the grant has all
// of it. Grants carry no trailers, expectations and upgrades, nor do results (see WriteHead).
func newCall(ctx context.Context, id invocation.ID, g *agentwire.Granted) (*adapter.Call, *bodyPipe) {
	header := make(http.Header, len(g.GetHeaders()))
	for _, h := range g.GetHeaders() {
		header.Add(h.GetName(), string(h.GetValue()))
	}
	deadline, _ := ctx.Deadline()
	call := &adapter.Call{
		ID:            id.String(),
		Attempt:       int(g.GetAttempt()),
		Method:        g.GetMethod(),
		RequestURI:    g.GetRequestUri(),
		Host:          g.GetHost(),
		Header:        header,
		ContentLength: g.GetContentLength(),
		Deadline:      deadline,
	}
	if g.GetWhole() {
		call.Body = bytes.NewReader(g.GetWholeBody())
		call.ContentLength = int64(len(g.GetWholeBody()))
		return call, nil
	}
	reader, writer := io.Pipe()
	call.Body = reader
	return call, &bodyPipe{r: reader, w: writer, stop: context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })}
}

var errBodyCut = errors.New("podagent: the request was broken off")

// bodyPipe streams a call's body. It ends with the call's context. A nil one belongs to a body
// that came whole.
type bodyPipe struct {
	r    *io.PipeReader
	w    *io.PipeWriter
	stop func() bool
}

// write passes on a part of the body. A function that does not read its request is no error:
// the rest is dropped.
func (b *bodyPipe) write(p []byte) {
	if b != nil {
		_, _ = b.w.Write(p)
	}
}

// endBody ends the body; cut says that it is not the whole.
func (b *bodyPipe) endBody(cut bool) {
	switch {
	case b == nil:
	case cut:
		_ = b.w.CloseWithError(errBodyCut)
	default:
		_ = b.w.Close()
	}
}

// close ends the pipe; a body that has not ended was cut.
func (b *bodyPipe) close() {
	if b != nil {
		b.stop()
		b.endBody(true)
	}
}

// discard drops the rest of the body, so that the messages behind it are read.
func (b *bodyPipe) discard() {
	if b != nil {
		_ = b.r.Close()
	}
}
