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

// How long an agent waits for a gateway, beyond what the core waits for: to take
// note of a release, and to be connected with the result of a call that began before
// its claim.
const (
	releasePatience = 10 * time.Second
	resultPatience  = 500 * time.Millisecond
)

// Why a call, or the claim of one, is given up.
var (
	errUnwanted = errors.New("nobody waits for its answer any more")
	errReleased = errors.New("the claim was given up")
)

// calls is what all attempts have in common.
type calls struct {
	adapter  adapter.Adapter
	gateways *gatewayPool
	function *functionEnd
	// watched says that somebody watches the function's process.
	watched bool
	// tell tells the core what happened.
	tell   func(core.Event)
	log    *slog.Logger
	served atomic.Bool // was granted a call
}

// attempt is one ticket, and what the agent has of its call.
type attempt struct {
	*calls
	number core.Attempt
	ticket invocation.Ticket
	cid    string
	// cancel ends the call and the stream to the gateway; cut ends the call alone, and
	// leaves the stream to tell of it.
	cancel, cut context.CancelCauseFunc
	// gateway is nil until it is needed.
	gateway *gateway
	// asked is when the claim was sent; zero before that.
	asked time.Time
	state claimState
}

// claimState is how far the claim has come.
type claimState struct {
	mu sync.Mutex // guards everything below
	// stream is there once the claim is on its way.
	stream            attemptStream
	granted, released bool
	// patience ends with the time that the gateway has to take note of a release.
	patience *time.Timer
}

// grant lets the call run.
func (at *attempt) grant() {
	at.state.mu.Lock()
	defer at.state.mu.Unlock()
	at.state.granted = true
}

// release gives up a claim. A gateway that may have heard it hears of that, behind it on
// the same stream, and gets some time to hear that.
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
	at.state.patience = time.AfterFunc(releasePatience, func() { at.cancel(errReleased) })
}

// close gives back what it has.
func (at *attempt) close() {
	at.cancel(nil)
	at.state.mu.Lock()
	if at.state.patience != nil {
		at.state.patience.Stop()
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
		at.tell(core.Unreachable{Attempt: at.number})
	case reply.GetRefused().GetReason() == agentwire.Refused_REASON_UNSUPPORTED:
		at.log.Warn("the gateway does not speak this agent's protocol", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway)
		at.tell(core.Unreachable{Attempt: at.number})
	case reply.GetGranted() == nil:
		at.tell(core.Refused{Attempt: at.number})
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

// connect finds the connection to the ticket's gateway, which need not stand.
func (at *attempt) connect() (err error) {
	at.gateway, err = at.gateways.take(at.ticket.Gateway)
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
	at.state.stream, at.asked = stream, time.Now()
	return stream.Send(at.claimOf(false))
}

func (at *attempt) claimOf(started bool) *agentwire.AttemptRequest {
	return &agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Claim{Claim: &agentwire.Claim{
		InvocationId: at.ticket.ID[:], Token: at.ticket.Token[:], Cid: at.cid, Started: started,
		ProtocolMin: wire.AgentProtocols.Min, ProtocolMax: wire.AgentProtocols.Max, Features: wire.AgentProtocols.Features,
	}}}
}

// mayRun tells the core of the grant, which may come too late.
func (at *attempt) mayRun() bool {
	at.tell(core.Granted{Attempt: at.number})
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
	w.stream, w.begunAfter = stream, w.begun.Sub(at.asked)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		at.follow(ctx, w, body)
	}()
	at.invoke(callCtx, call, w, body)
	// The gateway's end of the stream: only then has the result arrived.
	<-followed
}

// claimSoon is how long a call may run unclaimed: its gateway offers it again after
// a second.
const claimSoon = 200 * time.Millisecond

// runUnclaimed runs a call whose request came with its ticket, and claims it with the
// result, or as soon as it takes long.
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
			at.follow(ctx, w, body)
		}()
		return nil
	}
	early := time.AfterFunc(claimSoon, w.openOnce)
	at.invoke(callCtx, call, w, body)
	early.Stop()
	if w.opened() {
		<-followed
	}
}

// claimLate opens the stream for a result, and claims what it is the result of. The
// call goes on if that fails.
func (at *attempt) claimLate(ctx context.Context) (attemptStream, error) {
	if err := at.connect(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	impatient := time.AfterFunc(resultPatience, cancel)
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
	err := at.whyLost(ctx, at.adapter.Invoke(ctx, call, w))
	ended := core.CallEnded{Attempt: at.number, Outcome: outcome(err), Exec: time.Since(w.begun)}
	body.drop()
	w.end(err)
	ended.Unclaimed = w.unreached
	if err != nil {
		ended.Detail = err.Error()
		at.log.Warn("a call did not end as it should", "invocation", call.ID, "trace", traceOf(call.Header), "err", err)
	}
	at.tell(ended)
}

// endPatience is how long a call that the function broke off waits to hear whether, and
// how, the function ended: its connections break a moment before its end is known.
const endPatience = 50 * time.Millisecond

// whyLost is the error of a call, or the end of the function if that explains it.
func (cs *calls) whyLost(ctx context.Context, err error) error {
	if !cs.watched || !errors.Is(err, adapter.ErrFunctionLost) {
		return err
	}
	patience, over := context.WithTimeout(ctx, endPatience)
	defer over()
	select {
	case <-cs.function.known:
	case <-patience.Done():
	}
	if lost := cs.function.lost(); lost != nil {
		return lost
	}
	return err
}

// follow takes what the gateway sends after the claim: the body, the order to stop,
// and the refusal of a call that began before. It returns when the gateway has ended
// the stream.
func (at *attempt) follow(ctx context.Context, w *resultWriter, body *bodyPipe) {
	defer body.close()
	for {
		reply, err := w.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				at.log.Warn("the gateway of a call is lost", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway, "err", err)
				w.lost.Store(true)
				at.tell(core.GatewayLost{Attempt: at.number})
			}
			return
		}
		switch kind := reply.GetKind().(type) {
		case *agentwire.AttemptReply_Cancel:
			at.tell(core.Cancelled{Attempt: at.number})
		case *agentwire.AttemptReply_Refused:
			w.lost.Store(true)
			at.tell(core.Refused{Attempt: at.number})
		case *agentwire.AttemptReply_Body:
			body.write(kind.Body)
		case *agentwire.AttemptReply_BodyEnd:
			if kind.BodyEnd.GetAborted() {
				at.tell(core.BodyCut{Attempt: at.number})
			}
			body.end(kind.BodyEnd.GetAborted())
		}
	}
}
