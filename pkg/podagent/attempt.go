package podagent

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

type attemptStream = grpc.BidiStreamingClient[wirev1.AttemptRequest, wirev1.AttemptReply]

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

// attempt is one ticket, and what the agent has of its call.
type attempt struct {
	number core.Attempt
	ticket invoke.Ticket
	// ctx is of the call and of the stream to the gateway; cancel ends it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// callCtx is of the call alone; cut ends it, and leaves the stream to tell of it.
	callCtx context.Context
	cut     context.CancelCauseFunc
	// gateway is nil until it is needed.
	gateway *gateway
	// asked is when the claim was sent; zero before that.
	asked time.Time

	// The rest is kept under the agent's lock. stream is there once the claim is
	// on its way.
	stream            attemptStream
	granted, released bool
}

// newAttempt is for the caller that holds the lock.
func (a *Agent) newAttempt(n core.Attempt, t invoke.Ticket) *attempt {
	ctx, cancel := context.WithCancelCause(a.work)
	callCtx, cut := context.WithCancelCause(ctx)
	at := &attempt{number: n, ticket: t, ctx: ctx, cancel: cancel, callCtx: callCtx, cut: cut}
	a.attempts[n] = at
	return at
}

// over ends an attempt: nothing more is to come of it.
func (a *Agent) over(at *attempt) {
	at.cancel(nil)
	if at.gateway != nil {
		a.gateways.giveBack(at.gateway)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(core.Delivered{Attempt: at.number}, nil)
	delete(a.attempts, at.number)
}

// release gives up a claim. A gateway that may have heard it is told, behind it on
// the same stream, and gets some time to hear that. The caller holds the lock.
func (at *attempt) release() {
	at.released = true
	if at.stream == nil {
		at.cancel(errReleased)
		return
	}
	_ = at.stream.Send(&wirev1.AttemptRequest{Kind: &wirev1.AttemptRequest_Release{Release: &wirev1.Release{
		Reason: errReleased.Error(),
	}}})
	_ = at.stream.CloseSend()
	timer := time.AfterFunc(releasePatience, func() { at.cancel(errReleased) })
	context.AfterFunc(at.ctx, func() { timer.Stop() })
}

// claimAndRun claims one ticket's call and, if it was granted, runs it.
func (a *Agent) claimAndRun(at *attempt) {
	defer a.over(at)
	stream, reply, err := a.claim(at)
	switch {
	case err != nil:
		a.deps.Log.Warn("could not claim", "invocation", at.ticket.ID.String(), "addr", at.ticket.Gateway, "err", err)
		a.tell(core.Unreachable{Attempt: at.number})
	case reply.GetGranted() == nil:
		a.tell(core.Refused{Attempt: at.number})
	case a.mayRun(at):
		a.run(at, stream, reply.GetGranted())
	default:
		awaitEnd(stream)
	}
}

// claim asks the ticket's gateway for the call.
func (a *Agent) claim(at *attempt) (attemptStream, *wirev1.AttemptReply, error) {
	if err := a.connect(at); err != nil {
		return nil, nil, err
	}
	stream, err := wirev1.NewGatewayClient(at.gateway.conn).Attempt(at.ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := a.sendClaim(at, stream); err != nil && !errors.Is(err, io.EOF) { // at EOF, Recv knows why
		return nil, nil, err
	}
	reply, err := stream.Recv()
	return stream, reply, err
}

// connect finds the connection to the ticket's gateway, which need not stand.
func (a *Agent) connect(at *attempt) (err error) {
	at.gateway, err = a.gateways.take(at.ticket.Gateway)
	return err
}

// sendClaim sends the claim unless it was given up before. It holds the lock, so that
// a release goes behind it.
func (a *Agent) sendClaim(at *attempt, stream attemptStream) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at.released {
		return errReleased
	}
	at.stream, at.asked = stream, time.Now()
	return stream.Send(a.claimOf(at, false))
}

func (a *Agent) claimOf(at *attempt, started bool) *wirev1.AttemptRequest {
	return &wirev1.AttemptRequest{Kind: &wirev1.AttemptRequest_Claim{Claim: &wirev1.Claim{
		InvocationId: at.ticket.ID[:], Token: at.ticket.Token[:], Cid: a.identity.cid, Started: started,
	}}}
}

// mayRun tells the core of the grant, which may come too late.
func (a *Agent) mayRun(at *attempt) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step(core.Granted{Attempt: at.number}, nil)
	return at.granted
}

// awaitEnd waits until the gateway has ended the stream.
func awaitEnd(stream attemptStream) {
	for {
		if _, err := stream.Recv(); err != nil {
			return
		}
	}
}
