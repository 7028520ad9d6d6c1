package podagent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

type attemptStream = grpc.BidiStreamingClient[agentwire.AttemptRequest, agentwire.AttemptReply]

// How long an agent waits for a gateway beyond the core's own timeouts: to process a release,
// and to take a connection for the result of a call that started before its claim.
const (
	releaseTimeout = 10 * time.Second
	resultTimeout  = 500 * time.Millisecond
)

// Why a call or its claim is cancelled.
var (
	errUnwanted = errors.New("nobody waits for its answer any more")
	errReleased = errors.New("the claim was given up")
)

// calls is what all attempts have in common.
type calls struct {
	adapter  adapter.Adapter
	gateways *gatewayPool
	function *functionEnd
	// watched says that the agent's parent watches the function's process.
	watched bool
	// notify passes an event to the core.
	notify func(core.Event)
	log    *slog.Logger
	served atomic.Bool // was granted a call
}

// attempt is the work on one ticket: its claim, its call, and its result.
type attempt struct {
	*calls
	number core.Attempt
	ticket invocation.Ticket
	cid    string
	// cancel ends the call and the stream to the gateway; cut ends the call alone, so that
	// its result still reaches the gateway.
	cancel, cut context.CancelCauseFunc
	// gateway is nil until it is needed.
	gateway *gateway
	// claimedAt is when the agent sent the claim; zero before that.
	claimedAt time.Time
	state     claimState
}

// claimState is the progress of a claim.
type claimState struct {
	mu sync.Mutex // guards everything below
	// stream is set once the claim is sent.
	stream            attemptStream
	granted, released bool
	// releaseTimer cancels an attempt whose release the gateway does not process.
	releaseTimer *time.Timer
}

// grant lets the call run.
func (at *attempt) grant() {
	at.state.mu.Lock()
	defer at.state.mu.Unlock()
	at.state.granted = true
}

// release releases a claim. If the claim was sent, the release follows it on the same stream,
// and the gateway gets releaseTimeout to process it.
func (at *attempt) release() {
	at.state.mu.Lock()
	defer at.state.mu.Unlock()
	at.state.released = true
	stream := at.state.stream
	if stream == nil {
		at.cancel(errReleased)
		return
	}
	_ = stream.Send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Release{Release: &agentwire.Release{
		Reason: errReleased.Error(),
	}}})
	_ = stream.CloseSend()
	at.state.releaseTimer = time.AfterFunc(releaseTimeout, func() { at.cancel(errReleased) })
}

// close frees its timer, contexts and connection.
func (at *attempt) close() {
	at.cancel(nil)
	at.state.mu.Lock()
	if at.state.releaseTimer != nil {
		at.state.releaseTimer.Stop()
	}
	at.state.mu.Unlock()
	if at.gateway != nil {
		at.gateways.giveBack(at.gateway)
	}
}

// claimAndRun claims the ticket's call and, if it was granted, runs it.
func (at *attempt) claimAndRun(ctx, callCtx context.Context) {
	stream, reply, err := at.claim(ctx)
	switch {
	case err != nil:
		at.log.Warn("could not claim", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway, "err", err)
		at.notify(core.Unreachable{Attempt: at.number})
	case reply.GetRefused().GetReason() == agentwire.Refused_REASON_UNSUPPORTED:
		at.log.Warn("the gateway does not speak this agent's protocol", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway)
		at.notify(core.Unreachable{Attempt: at.number})
	case reply.GetGranted() == nil:
		at.notify(core.Refused{Attempt: at.number})
	case at.mayRun():
		at.run(ctx, callCtx, stream, reply.GetGranted())
	default:
		awaitEnd(stream)
	}
}

// claim asks the ticket's gateway for the call.
func (at *attempt) claim(ctx context.Context) (attemptStream, *agentwire.AttemptReply, error) {
	if err := at.connect(); err != nil {
		return nil, nil, err
	}
	stream, err := agentwire.NewGatewayClient(at.gateway.conn).Attempt(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := at.sendClaim(stream); err != nil && !errors.Is(err, io.EOF) { // at EOF, Recv knows why
		return nil, nil, err
	}
	for {
		reply, err := stream.Recv()
		if err != nil || !agentwire.IsUnknown(reply) {
			return stream, reply, err
		}
	}
}

// connect gets a connection to the ticket's gateway, which may not be up yet.
func (at *attempt) connect() (err error) {
	at.gateway, err = at.gateways.acquire(at.ticket.Gateway)
	return err
}

// sendClaim sends the claim unless it was given up before. It holds the lock, so that
// a release goes behind it.
func (at *attempt) sendClaim(stream attemptStream) error {
	at.state.mu.Lock()
	defer at.state.mu.Unlock()
	if at.state.released {
		return errReleased
	}
	at.state.stream, at.claimedAt = stream, time.Now()
	return stream.Send(at.claimOf(false))
}

func (at *attempt) claimOf(started bool) *agentwire.AttemptRequest {
	return &agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Claim{Claim: &agentwire.Claim{
		InvocationId: at.ticket.ID[:], Token: at.ticket.Token[:], Cid: at.cid, Started: started,
		ProtocolMin: wire.AgentProtocols.Min, ProtocolMax: wire.AgentProtocols.Max, Features: wire.AgentProtocols.Features,
	}}}
}

// mayRun feeds the core the grant, which may come too late.
func (at *attempt) mayRun() bool {
	at.notify(core.Granted{Attempt: at.number})
	at.state.mu.Lock()
	defer at.state.mu.Unlock()
	return at.state.granted
}

// awaitEnd waits until the gateway has ended the stream.
func awaitEnd(stream attemptStream) {
	for {
		if _, err := stream.Recv(); err != nil {
			return
		}
	}
}

// run runs a call that was granted.
func (at *attempt) run(ctx, callCtx context.Context, stream attemptStream, granted *agentwire.Granted) {
	callCtx, expire := context.WithTimeout(callCtx, time.Duration(granted.GetRemainingNs()))
	defer expire()
	call, body := newCall(callCtx, at.ticket.ID, granted)
	w := at.newResult(granted.GetMethod())
	w.stream, w.begunAfter = stream, w.begun.Sub(at.claimedAt)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		at.receiveReplies(ctx, w, body)
	}()
	at.invoke(callCtx, call, w, body)
	// The gateway's end of the stream: only then has the result arrived.
	<-followed
}

// lateClaimDelay is how long a call may run unclaimed. It is well below the second after
// which its gateway offers the ticket again.
const lateClaimDelay = 200 * time.Millisecond

// runUnclaimed runs a call whose request came with its ticket. It claims the call with the
// result, or after lateClaimDelay.
func (at *attempt) runUnclaimed(ctx, callCtx context.Context, request *agentwire.Granted) {
	callCtx, expire := context.WithTimeout(callCtx, time.Duration(request.GetRemainingNs()))
	defer expire()
	call, body := newCall(callCtx, at.ticket.ID, request)
	w := at.newResult(request.GetMethod())
	followed := make(chan struct{})
	w.open = func() (err error) {
		if w.stream, err = at.claimLate(ctx); err != nil {
			at.log.Warn("could not claim", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway, "err", err)
			close(followed)
			return err
		}
		go func() {
			defer close(followed)
			at.receiveReplies(ctx, w, body)
		}()
		return nil
	}
	early := time.AfterFunc(lateClaimDelay, w.openOnce)
	at.invoke(callCtx, call, w, body)
	early.Stop()
	if w.opened() {
		<-followed
	}
}

// claimLate opens the stream for a result, and claims the call on it. If that fails, the call
// goes on.
func (at *attempt) claimLate(ctx context.Context) (attemptStream, error) {
	if err := at.connect(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	impatient := time.AfterFunc(resultTimeout, cancel)
	defer impatient.Stop()
	stream, err := agentwire.NewGatewayClient(at.gateway.conn).Attempt(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(at.claimOf(true)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream, nil
}

// invoke hands a call to the function and its result to the gateway, and reports.
func (at *attempt) invoke(ctx context.Context, call *adapter.Call, w *resultWriter, body *bodyPipe) {
	err := at.lossCause(ctx, at.adapter.Invoke(ctx, call, w))
	ended := core.CallEnded{Attempt: at.number, Outcome: outcome(err), Exec: time.Since(w.begun)}
	body.discard()
	w.sendEnd(err)
	ended.Unclaimed = w.unreached
	if err != nil {
		ended.Detail = err.Error()
		at.log.Warn("a call did not end as it should", "invocation", call.ID, "trace", traceOf(call.Header), "err", err)
	}
	at.notify(ended)
}

// functionEndTimeout is how long a call that the function broke off waits for the report of
// the function's end, because its connections break a moment earlier.
const functionEndTimeout = 50 * time.Millisecond

// lossCause is the end of the function if that explains err, and otherwise err.
func (cs *calls) lossCause(ctx context.Context, err error) error {
	if !cs.watched || !errors.Is(err, adapter.ErrFunctionLost) {
		return err
	}
	patience, over := context.WithTimeout(ctx, functionEndTimeout)
	defer over()
	select {
	case <-cs.function.known:
	case <-patience.Done():
	}
	if lost := cs.function.lostError(); lost != nil {
		return lost
	}
	return err
}

// receiveReplies handles what the gateway sends after the claim: the body, a cancellation,
// and the refusal of a call that started before its claim. It returns when the gateway has
// ended the stream.
func (at *attempt) receiveReplies(ctx context.Context, w *resultWriter, body *bodyPipe) {
	defer body.close()
	for {
		reply, err := w.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				at.log.Warn("the gateway of a call is lost", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway, "err", err)
				w.lost.Store(true)
				at.notify(core.GatewayLost{Attempt: at.number})
			}
			return
		}
		switch kind := reply.GetKind().(type) {
		case *agentwire.AttemptReply_Cancel:
			at.notify(core.Cancelled{Attempt: at.number})
		case *agentwire.AttemptReply_Refused:
			w.lost.Store(true)
			at.notify(core.Refused{Attempt: at.number})
		case *agentwire.AttemptReply_Body:
			body.write(kind.Body)
		case *agentwire.AttemptReply_BodyEnd:
			if kind.BodyEnd.GetAborted() {
				at.notify(core.BodyCut{Attempt: at.number})
			}
			body.endBody(kind.BodyEnd.GetAborted())
		}
	}
}
