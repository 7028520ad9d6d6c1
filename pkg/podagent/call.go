package podagent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// run runs a call that was granted.
func (a *Agent) run(at *attempt, stream attemptStream, granted *wirev1.Granted) {
	callCtx, expire := context.WithTimeout(at.callCtx, time.Duration(granted.GetRemainingNs()))
	defer expire()
	call, body := newCall(callCtx, at, granted)
	w := a.newResult(granted.GetMethod())
	w.stream, w.begunAfter = stream, w.begun.Sub(at.asked)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		a.follow(at, w, body)
	}()
	a.invoke(callCtx, at, call, w, body)
	// The gateway's end of the stream: only then has the result arrived.
	<-followed
}

// claimSoon is how long a call may run unclaimed: its gateway offers it again after
// a second.
const claimSoon = 200 * time.Millisecond

// runUnclaimed runs a call whose request came with its ticket, and claims it with the
// result, or as soon as it takes long.
func (a *Agent) runUnclaimed(at *attempt, request *wirev1.Granted) {
	defer a.over(at)
	callCtx, expire := context.WithTimeout(at.callCtx, time.Duration(request.GetRemainingNs()))
	defer expire()
	call, body := newCall(callCtx, at, request)
	w := a.newResult(request.GetMethod())
	followed := make(chan struct{})
	w.open = func() (err error) {
		if w.stream, err = a.claimLate(at); err != nil {
			a.deps.Log.Warn("could not claim", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway, "err", err)
			close(followed)
			return err
		}
		go func() {
			defer close(followed)
			a.follow(at, w, body)
		}()
		return nil
	}
	early := time.AfterFunc(claimSoon, w.openOnce)
	a.invoke(callCtx, at, call, w, body)
	early.Stop()
	if w.opened() {
		<-followed
	}
}

// claimLate opens the stream for a result, and claims what it is the result of. The
// call goes on if that fails.
func (a *Agent) claimLate(at *attempt) (attemptStream, error) {
	if err := a.connect(at); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(a.work)
	context.AfterFunc(at.ctx, cancel)
	impatient := time.AfterFunc(resultPatience, cancel)
	defer impatient.Stop()
	stream, err := wirev1.NewGatewayClient(at.gateway.conn).Attempt(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(a.claimOf(at, true)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream, nil
}

// invoke hands a call to the function and its result to the gateway, and reports.
func (a *Agent) invoke(ctx context.Context, at *attempt, call *adapter.Call, w *resultWriter, body *bodyPipe) {
	err := a.whyLost(ctx, a.deps.Adapter.Invoke(ctx, call, w))
	ended := core.CallEnded{Attempt: at.number, Outcome: outcome(err), Exec: time.Since(w.begun)}
	body.drop()
	w.end(err)
	ended.Unclaimed = w.unreached
	if err != nil {
		ended.Detail = err.Error()
		a.deps.Log.Warn("a call did not end as it should", "invocation", call.ID, "trace", traceOf(call.Header), "err", err)
	}
	a.tell(ended)
}

// endPatience is how long a call that the function broke off waits to hear whether, and
// how, the function ended: its connections break a moment before its end is known.
const endPatience = 50 * time.Millisecond

// whyLost is the error of a call, or the end of the function if that explains it.
func (a *Agent) whyLost(ctx context.Context, err error) error {
	if a.deps.FunctionEnd == nil || !errors.Is(err, adapter.ErrFunctionLost) {
		return err
	}
	patience, over := context.WithTimeout(ctx, endPatience)
	defer over()
	select {
	case <-a.functionEnded:
	case <-patience.Done():
	}
	select {
	case <-a.functionEnded:
		return a.lost
	default:
		return err
	}
}

// traceOf is the id of the trace that a call is in; empty if it is in none.
func traceOf(h http.Header) string {
	parts := strings.Split(h.Get("Traceparent"), "-")
	if len(parts) < 4 {
		return ""
	}
	return parts[1]
}

// outcome is what an error of an adapter tells of the function.
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

// newCall is the call that was granted. Its body is fed by follow if it did not
// come whole.
func newCall(ctx context.Context, at *attempt, g *wirev1.Granted) (*adapter.Call, *bodyPipe) {
	header := make(http.Header, len(g.GetHeaders()))
	for _, h := range g.GetHeaders() {
		header.Add(h.GetName(), string(h.GetValue()))
	}
	deadline, _ := ctx.Deadline()
	call := &adapter.Call{
		ID:            at.ticket.ID.String(),
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

// bodyPipe feeds a call's body as it comes. It ends with the call's context. A nil
// one is of a body that came whole.
type bodyPipe struct {
	r    *io.PipeReader
	w    *io.PipeWriter
	stop func() bool
}

// write passes on what came. A function that does not read its request is no
// error: what is left is dropped.
func (b *bodyPipe) write(p []byte) {
	if b != nil {
		_, _ = b.w.Write(p)
	}
}

// end ends the body; cut says that it is not the whole.
func (b *bodyPipe) end(cut bool) {
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
		b.end(true)
	}
}

// drop drops what comes from now on, so that whatever follows it is seen.
func (b *bodyPipe) drop() {
	if b != nil {
		_ = b.r.Close()
	}
}

// follow takes what the gateway sends after the claim: the body, the order to stop,
// and the refusal of a call that began before. It returns when the gateway has ended
// the stream.
func (a *Agent) follow(at *attempt, w *resultWriter, body *bodyPipe) {
	defer body.close()
	for {
		reply, err := w.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) && at.ctx.Err() == nil {
				a.deps.Log.Warn("the gateway of a call is lost", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway, "err", err)
				w.lost.Store(true)
				a.tell(core.GatewayLost{Attempt: at.number})
			}
			return
		}
		switch kind := reply.GetKind().(type) {
		case *wirev1.AttemptReply_Cancel:
			a.tell(core.Cancelled{Attempt: at.number})
		case *wirev1.AttemptReply_Refused:
			w.lost.Store(true)
			a.tell(core.Refused{Attempt: at.number})
		case *wirev1.AttemptReply_Body:
			body.write(kind.Body)
		case *wirev1.AttemptReply_BodyEnd:
			if kind.BodyEnd.GetAborted() {
				a.tell(core.BodyCut{Attempt: at.number})
			}
			body.end(kind.BodyEnd.GetAborted())
		}
	}
}
