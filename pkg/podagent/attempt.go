package podagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

type attemptStream = grpc.BidiStreamingClient[wirev1.AttemptRequest, wirev1.AttemptReply]

// attempt claims one ticket's call and runs it.
func (a *Agent) attempt(ctx context.Context, ticket *wirev1.Ticket, cold bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := &wirev1.Done{InvocationId: ticket.GetInvocationId()}
	// 1. The claim.
	stream, granted, err := a.claim(ctx, ticket)
	if err != nil {
		a.deps.Log.Warn("could not claim", "addr", ticket.GetGateway(), "err", err)
	}
	if granted == nil {
		a.finish(done, nil)
		return
	}
	// 2. The call.
	callCtx, expire := context.WithTimeout(ctx, time.Duration(granted.GetRemainingNs()))
	defer expire()
	call, body := newCall(ticket, granted, callCtx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follow(stream, body, cancel)
	}()
	begun := time.Now()
	w := &resultWriter{stream: stream, begun: begun, cold: cold, isHead: granted.GetMethod() == http.MethodHead}
	err = a.deps.Adapter.Invoke(callCtx, call, w)
	done.ExecNs = int64(time.Since(begun))
	// 3. The result, and the next pull.
	if sendErr := w.end(err); err == nil {
		err = sendErr
	}
	if err != nil {
		a.deps.Log.Warn("a call did not end as it should", "invocation", call.ID, "err", err)
	}
	_ = stream.CloseSend()
	if errors.Is(err, adapter.ErrNotStarted) && (ctx.Err() != nil || body.cut()) {
		// It was the client that broke off, and the function saw nothing.
		err = nil
	}
	a.finish(done, err)
	// 4. The gateway's end of the stream.
	<-ended
}

// claim asks the ticket's gateway for the call; granted is nil if it was
// refused.
func (a *Agent) claim(ctx context.Context, ticket *wirev1.Ticket) (attemptStream, *wirev1.Granted, error) {
	conn, err := a.gateways.to(ticket.GetGateway())
	if err != nil {
		return nil, nil, err
	}
	stream, err := wirev1.NewGatewayClient(conn).Attempt(ctx)
	if err != nil {
		return nil, nil, err
	}
	err = stream.Send(&wirev1.AttemptRequest{Kind: &wirev1.AttemptRequest_Claim{Claim: &wirev1.Claim{
		InvocationId: ticket.GetInvocationId(), Token: ticket.GetToken(), Cid: a.config.CID,
	}}})
	if err != nil && !errors.Is(err, io.EOF) { // at EOF, Recv knows why
		return nil, nil, err
	}
	reply, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	return stream, reply.GetGranted(), nil
}

// newCall is the call that was granted. Its body is fed by follow if it did not
// come whole.
func newCall(ticket *wirev1.Ticket, g *wirev1.Granted, ctx context.Context) (*adapter.Call, *bodyPipe) {
	header := make(http.Header, len(g.GetHeaders()))
	for _, h := range g.GetHeaders() {
		header.Add(h.GetName(), h.GetValue())
	}
	deadline, _ := ctx.Deadline()
	call := &adapter.Call{
		ID:            fmt.Sprintf("%x", ticket.GetInvocationId()),
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
	return call, &bodyPipe{w: writer, stop: context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })}
}

var errBodyCut = errors.New("podagent: the client broke off its request")

// bodyPipe feeds a call's body as it comes. It ends with the call's context.
type bodyPipe struct {
	w       *io.PipeWriter
	stop    func() bool
	aborted atomic.Bool
}

// write passes on what came. A function that does not read its request is no
// error: what is left is dropped.
func (b *bodyPipe) write(p []byte) { _, _ = b.w.Write(p) }

func (b *bodyPipe) end(aborted bool) {
	if aborted {
		b.aborted.Store(true)
		_ = b.w.CloseWithError(errBodyCut)
		return
	}
	_ = b.w.Close()
}

// close ends the pipe; a body that has not ended was cut.
func (b *bodyPipe) close() {
	b.stop()
	_ = b.w.CloseWithError(errBodyCut)
}

// cut tells whether the client broke off; false for a body that came whole.
func (b *bodyPipe) cut() bool { return b != nil && b.aborted.Load() }

// follow takes what the gateway sends after the grant: the body, and the order
// to stop. It returns when the gateway has ended the stream.
func follow(stream attemptStream, body *bodyPipe, cancel func()) {
	if body != nil {
		defer body.close()
	}
	for {
		reply, err := stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				cancel() // nobody will hear the result
			}
			return
		}
		switch kind := reply.GetKind().(type) {
		case *wirev1.AttemptReply_Cancel:
			cancel()
		case *wirev1.AttemptReply_Body:
			if body != nil {
				body.write(kind.Body)
			}
		case *wirev1.AttemptReply_BodyEnd:
			if body != nil {
				body.end(kind.BodyEnd.GetAborted())
			}
		}
	}
}
