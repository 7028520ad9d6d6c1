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

// attempt claims one ticket's call and, if it was granted, runs it.
func (a *Agent) attempt(ctx context.Context, ticket *wirev1.Ticket) {
	defer a.busy.Done()
	done := &wirev1.Done{InvocationId: ticket.GetInvocationId()}
	gateway, err := a.gateways.take(ticket.GetGateway())
	if err != nil {
		a.deps.Log.Warn("a ticket names a gateway that is none", "addr", ticket.GetGateway(), "err", err)
		a.finish(done, nil)
		return
	}
	defer a.gateways.giveBack(gateway)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, granted, err := a.claim(ctx, gateway.conn, ticket)
	if err != nil {
		a.deps.Log.Warn("could not claim", "addr", ticket.GetGateway(), "err", err)
	}
	if granted == nil {
		a.finish(done, nil)
		return
	}
	a.run(ctx, cancel, stream, ticket, granted)
}

// claim asks the ticket's gateway for the call; granted is nil if it was
// refused.
func (a *Agent) claim(ctx context.Context, gateway grpc.ClientConnInterface, ticket *wirev1.Ticket) (attemptStream, *wirev1.Granted, error) {
	stream, err := wirev1.NewGatewayClient(gateway).Attempt(ctx)
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

// run runs a call that was granted. ctx is the stream's.
func (a *Agent) run(ctx context.Context, cancel context.CancelCauseFunc, stream attemptStream, ticket *wirev1.Ticket, granted *wirev1.Granted) {
	// 1. The call.
	callCtx, expire := context.WithTimeout(ctx, time.Duration(granted.GetRemainingNs()))
	defer expire()
	call, body := newCall(callCtx, ticket, granted)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follow(stream, body, cancel)
	}()
	begun := time.Now()
	w := &resultWriter{stream: stream, begun: begun, cold: !a.served.Swap(true), isHead: granted.GetMethod() == http.MethodHead}
	err := a.deps.Adapter.Invoke(callCtx, call, w)
	done := &wirev1.Done{InvocationId: ticket.GetInvocationId(), ExecNs: int64(time.Since(begun))}
	body.drop()
	// 2. The result. That it may not arrive says nothing against the
	// instance.
	unwanted := ctx.Err() != nil || body.cut()
	if sendErr := w.end(err); err != nil || sendErr != nil {
		a.deps.Log.Warn("a call did not end as it should", "invocation", call.ID, "err", errors.Join(err, sendErr))
	}
	_ = stream.CloseSend()
	// 3. The next pull.
	if errors.Is(err, adapter.ErrNotStarted) {
		done.ExecNs = 0
		if unwanted { // it was the client that broke off
			err = nil
		}
	}
	a.finish(done, err)
	// 4. The gateway's end of the stream: only then has the result arrived.
	<-ended
}

// newCall is the call that was granted. Its body is fed by follow if it did not
// come whole.
func newCall(ctx context.Context, ticket *wirev1.Ticket, g *wirev1.Granted) (*adapter.Call, *bodyPipe) {
	header := make(http.Header, len(g.GetHeaders()))
	for _, h := range g.GetHeaders() {
		header.Add(h.GetName(), string(h.GetValue()))
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
	return call, &bodyPipe{r: reader, w: writer, stop: context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })}
}

// Why a call is given up.
var (
	errGatewayLost = errors.New("the gateway that it came from was lost")
	errUnwanted    = errors.New("nobody waits for its answer any more")
)

var errBodyCut = errors.New("podagent: the client broke off its request")

// bodyPipe feeds a call's body as it comes. It ends with the call's context.
type bodyPipe struct {
	r       *io.PipeReader
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

// drop drops what comes from now on, so that whatever follows it is seen.
func (b *bodyPipe) drop() {
	if b != nil {
		_ = b.r.Close()
	}
}

// cut tells whether the client broke off; false for a body that came whole.
func (b *bodyPipe) cut() bool { return b != nil && b.aborted.Load() }

// follow takes what the gateway sends after the grant: the body, and the order
// to stop. It returns when the gateway has ended the stream.
func follow(stream attemptStream, body *bodyPipe, cancel context.CancelCauseFunc) {
	if body != nil {
		defer body.close()
	}
	for {
		reply, err := stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				cancel(errGatewayLost) // nobody will hear the result
			}
			return
		}
		switch kind := reply.GetKind().(type) {
		case *wirev1.AttemptReply_Cancel:
			cancel(errUnwanted)
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
