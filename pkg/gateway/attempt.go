package gateway

import (
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// detachedGrace is how long an answer may go on after its client has left.
const detachedGrace = 5 * time.Second

// attempt is one granted claim.
type attempt struct {
	claimant
	gateway *Gateway
	call    *call
	// agreed is the protocol that agent and gateway have in common.
	agreed wire.Agreed
}

// errUnsupported says that the claiming agent shares no protocol with this release.
var errUnsupported = errors.New("gateway: the agent's protocol is not spoken here")

// expire ends an attempt whose time is up.
func (a *attempt) expire() {
	a.gateway.dispatch.step(a.call, func(v *core.Invocation) core.Decision { return v.RunTimeout(a.number, time.Now()) }, problem{})
}

// Attempt serves one attempt of one instance.
func (g *Gateway) Attempt(stream attemptStream) error {
	// 1. The claim.
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	claim := first.GetClaim()
	id, err := invocation.IDFromBytes(claim.GetInvocationId())
	if claim == nil || err != nil {
		return status.Error(codes.InvalidArgument, "the first message must be a claim")
	}
	c := g.calls.find(id)
	if c == nil {
		g.metrics.claimRefused(core.ErrNotWaiting)
		return stream.Send(refuseClaim(core.ErrNotWaiting))
	}
	agreed, ok := wire.AgentProtocols.Meet(wire.Heard(claim))
	if !ok {
		g.metrics.claimRefused(errUnsupported)
		return stream.Send(refuseClaim(errUnsupported))
	}
	a := &attempt{claimant{cid: invocation.CID(claim.GetCid()), stream: stream}, g, c, agreed}
	if err := a.claim(invocation.TokenFromBytes(claim.GetToken())); err != nil {
		g.metrics.claimRefused(err)
		return stream.Send(refuseClaim(err))
	}
	g.metrics.claimGranted()
	// 2. The request.
	limit := time.AfterFunc(time.Until(a.runBy), a.expire)
	defer limit.Stop()
	if !claim.GetStarted() {
		if err := a.grant(); err != nil {
			a.lose(problems.InstanceLost, "handing over the call: "+err.Error())
			return err
		}
	}
	// 3. The answer. Its end ends the stream, and with it the sending of a
	// body that the function did not want.
	return a.answer()
}

// claim claims the call for the attempt, or says why not.
func (a *attempt) claim(token invocation.Token) error {
	c := a.call
	if !c.body.ended.Load() && a.gateway.deps.Left(c.request) {
		a.gateway.dispatch.step(c, (*core.Invocation).LeaveQueue, problem{})
	}
	grant, err := c.claim(&a.claimant, token)
	if err == nil && grant.CancelTicket {
		a.gateway.dispatch.cancelTicket(c)
	}
	return err
}

func refuseClaim(err error) *agentwire.AttemptReply {
	reason := agentwire.Refused_REASON_NOT_WAITING
	switch {
	case errors.Is(err, core.ErrBadToken):
		reason = agentwire.Refused_REASON_BAD_TOKEN
	case errors.Is(err, errUnsupported):
		reason = agentwire.Refused_REASON_UNSUPPORTED
	}
	return &agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Refused{Refused: &agentwire.Refused{Reason: reason}}}
}

// grant sends the request, and starts to send its body if that is large.
func (a *attempt) grant() error {
	c := a.call
	granted := c.grantMessage(c.destination().unit, a.number)
	granted.Protocol, granted.Features = a.agreed.Protocol, a.agreed.Features
	if err := a.sendReply(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Granted{Granted: granted}}); err != nil {
		return err
	}
	if !c.whole {
		c.body.replay.lendTo(a.number)
		go a.sendBody()
	}
	return nil
}

// sendBody copies the request's body to the instance: what an earlier attempt has read
// of it, and the rest as it comes.
func (a *attempt) sendBody() {
	if !a.call.body.replay.awaitTurn(a.stream.Context()) {
		return
	}
	defer a.call.body.replay.done()
	left := a.gateway.config.MaxBody
	buffer := make([]byte, bodyChunk)
	for offset := 0; ; {
		n, err := a.call.body.readFor(a.number, offset, buffer)
		if errors.Is(err, errReleased) {
			return
		}
		if errors.Is(err, errTooSlow) {
			defer a.abort(tooSlow(), true)
		}
		offset += n
		if left -= int64(n); left < 0 {
			a.abort(tooBig(a.gateway.config.MaxBody), false)
			err = errDetached
		} else if n > 0 {
			chunk := &agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Body{Body: buffer[:n]}}
			if a.sendReply(chunk) != nil {
				return
			}
		}
		if err != nil {
			end := &agentwire.BodyEnd{Aborted: !errors.Is(err, io.EOF)}
			_ = a.sendReply(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_BodyEnd{BodyEnd: end}})
			return
		}
	}
}

// abort answers the client because of its body. stop says that the instance should stop.
func (a *attempt) abort(p problem, stop bool) {
	a.gateway.dispatch.step(a.call, func(v *core.Invocation) core.Decision { return v.Abort(stop) }, p)
}

// answer copies the instance's messages to the client until they end.
func (a *attempt) answer() error {
	var drop *time.Timer
	defer func() {
		if drop != nil {
			drop.Stop()
		}
	}()
	for {
		msg, err := a.stream.Recv()
		if err != nil {
			a.lose(problems.InstanceLost, "the instance was lost during the call")
			return nil
		}
		over, err := a.handleMessage(msg)
		switch {
		case errors.Is(err, core.ErrOutOfOrder):
			a.lose(problems.InstanceLost, err.Error())
			return status.Error(codes.InvalidArgument, err.Error())
		case over:
			return nil
		case err != nil && drop == nil:
			drop = time.AfterFunc(detachedGrace, a.cancel)
		}
	}
}

// handleMessage handles one message of the instance. Any error but core.ErrOutOfOrder says
// that the answer is no longer needed.
func (a *attempt) handleMessage(msg *agentwire.AttemptRequest) (over bool, err error) {
	switch kind := msg.GetKind().(type) {
	case *agentwire.AttemptRequest_Release:
		return true, a.release(kind.Release.GetReason())
	case *agentwire.AttemptRequest_Head:
		a.call.headReceived(kind.Head)
		return a.head(kind.Head)
	case *agentwire.AttemptRequest_Body:
		return false, a.body(kind.Body)
	case *agentwire.AttemptRequest_End:
		a.call.executionEnded(kind.End)
		return true, a.finish(kind.End)
	case *agentwire.AttemptRequest_Claim:
		return false, core.ErrOutOfOrder
	}
	return false, nil // it means nothing to this release
}

// head starts the answer, or is all of it.
func (a *attempt) head(head *agentwire.ResultHead) (over bool, err error) {
	if s := head.GetStatus(); s < 200 || s > 599 {
		a.fail(newProblem(problems.BadAnswer,
			fmt.Sprintf("the function answered with the status %d, which is none", s)))
		return true, nil
	}
	if a.call.client.lengthMismatch(head) {
		a.fail(newProblem(problems.BadAnswer,
			fmt.Sprintf("the instance promised a body of %d bytes and sent one of %d", head.GetContentLength(), len(head.GetWholeBody()))))
		return true, nil
	}
	c := a.call
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	d, err := c.beginAnswer(a.number, head)
	a.gateway.dispatch.carryOut(c, d)
	if err == nil {
		a.gateway.config.ProblemDetail.trimStack(head)
		err = a.noteWriteError(c.client.head(head, a.runBy))
	}
	return head.GetWhole() && !errors.Is(err, core.ErrOutOfOrder), err
}

// body passes on more of the answer.
func (a *attempt) body(body []byte) error {
	if !a.call.begun(a.number) {
		return core.ErrOutOfOrder
	}
	return a.noteWriteError(a.call.client.write(body))
}

// noteWriteError records that the client could not be written to.
func (a *attempt) noteWriteError(err error) error {
	if err != nil && !errors.Is(err, errDetached) {
		a.gateway.dispatch.step(a.call, (*core.Invocation).ClientLeft, problem{})
	}
	return err
}

// finish ends the answer, well or not.
func (a *attempt) finish(end *agentwire.ResultEnd) error {
	failure := end.GetFailure()
	if failure == nil {
		var err error
		a.gateway.dispatch.step(a.call, func(v *core.Invocation) (d core.Decision) {
			d, err = v.Finish(a.number)
			return d
		}, problem{})
		if !errors.Is(err, core.ErrOutOfOrder) {
			a.call.client.finishAnswer()
			err = nil
		}
		return err
	}
	switch failure.GetKind() {
	case agentwire.Failure_KIND_TIMED_OUT:
		a.fail(timedOut(a.call.destination().unit))
	case agentwire.Failure_KIND_BODY_TOO_LARGE:
		a.gateway.dispatch.step(a.call, func(v *core.Invocation) core.Decision { return v.FailUntouched(a.number) },
			newProblem(problems.BodyTooLarge, failure.GetDetail()))
	case agentwire.Failure_KIND_BAD_ANSWER:
		a.fail(newProblem(problems.BadAnswer, failure.GetDetail()))
	default:
		a.lose(problems.FunctionLost, failure.GetDetail())
	}
	return nil
}

// fail ends the attempt and answers with a problem. It does nothing if the attempt has
// ended already.
func (a *attempt) fail(p problem) {
	a.gateway.dispatch.step(a.call, func(v *core.Invocation) core.Decision { return v.Fail(a.number) }, p)
}

// lose ends an attempt that was broken off. A function that may run twice is tried again.
func (a *attempt) lose(reason, detail string) {
	_ = a.requeue(true, reason, newProblem(reason, detail),
		func(v *core.Invocation, now time.Time) (core.Decision, error) {
			return v.Lose(a.number, now, invocation.NewToken(), reason)
		})
}

// release queues the call again, because the function has seen nothing of it.
func (a *attempt) release(reason string) error {
	p := newProblem(problems.InstanceLeft,
		"the instance ended before it could start, and the request's body cannot be read twice: "+reason)
	kept := a.call.body.replay.giveBack()
	return a.requeue(false, reason, p, func(v *core.Invocation, now time.Time) (core.Decision, error) {
		return v.Release(a.number, now, invocation.NewToken(), kept)
	})
}

// requeue ends the attempt without an answer. If that queues the call again, it logs why; ran
// says that the function may have run.
func (a *attempt) requeue(ran bool, why string, p problem, end func(*core.Invocation, time.Time) (core.Decision, error)) error {
	var err error
	now := time.Now()
	a.gateway.dispatch.step(a.call, func(v *core.Invocation) (d core.Decision) {
		if d, err = end(v, now); d.Offer {
			a.call.noteRequeue(earlierAttempt{number: a.number, cid: a.cid, from: a.claimed, until: now, ran: ran, why: why})
		}
		return d
	}, p)
	if errors.Is(err, core.ErrOver) {
		return nil
	}
	return err
}
