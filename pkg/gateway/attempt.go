package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/gateway/table"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

const (
	// bodyChunk is how much of a large body one message carries.
	bodyChunk = 32 << 10
	// maxAttempts is how often a call of an idempotent function is tried.
	maxAttempts = 3
	// detachedGrace is how long an answer may go on that nobody hears.
	detachedGrace = 5 * time.Second
)

type attemptStream = grpc.BidiStreamingServer[wirev1.AttemptRequest, wirev1.AttemptReply]

// attempt is one granted claim.
type attempt struct {
	gateway *Gateway
	call    *call
	number  int
	cid     invoke.CID
	claimed time.Time
	runBy   time.Time // when it must have ended
	stream  attemptStream
	sending sync.Mutex // guards Send, which must not be called twice at a time
	headed  bool       // the head of the answer has come
}

func (a *attempt) send(reply *wirev1.AttemptReply) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	return a.stream.Send(reply)
}

// expire ends an attempt whose time is up.
func (a *attempt) expire() {
	a.end(timedOut(a.call.function))
	a.cancel()
}

// cancel tells the instance to end the attempt. Its stream then ends. An
// instance that reads nothing makes it wait until then.
func (a *attempt) cancel() {
	_ = a.send(&wirev1.AttemptReply{Kind: &wirev1.AttemptReply_Cancel{Cancel: &wirev1.Cancel{}}})
}

// Attempt serves one attempt of one instance.
func (g *Gateway) Attempt(stream attemptStream) error {
	// 1. The claim.
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	claim := first.GetClaim()
	id, err := invoke.IDFromBytes(claim.GetInvocationId())
	if claim == nil || err != nil {
		return status.Error(codes.InvalidArgument, "the first message must be a claim")
	}
	g.mu.Lock()
	granted, err := g.table.Claim(id, invoke.TokenFromBytes(claim.GetToken()), invoke.CID(claim.GetCid()))
	g.mu.Unlock()
	if err != nil {
		g.metrics.claimRefused(err)
		return stream.Send(refuseClaim(err))
	}
	c := granted.Payload
	a := &attempt{gateway: g, call: c, number: granted.Attempt, cid: invoke.CID(claim.GetCid()), claimed: time.Now(), stream: stream}
	c.heldBy(a)
	if g.unheard(c) {
		// Its client has left just now.
		c.detach()
		a.forget()
		g.metrics.claimRefused(table.ErrNotWaiting)
		return stream.Send(refuseClaim(table.ErrNotWaiting))
	}
	g.metrics.claimGranted()
	if granted.Reoffered {
		// Another ticket of the same call may still be in a queue.
		g.withdraw(c)
	}
	// 2. The request.
	timeout := c.function.Spec.Timeout.Duration
	c.happened(func(t *timeline.Timeline) { t.Claimed(a.claimed) })
	a.runBy = a.claimed.Add(timeout + runGrace)
	limit := time.AfterFunc(timeout+runGrace, a.expire)
	defer limit.Stop()
	if !claim.GetStarted() {
		if err := a.grant(); err != nil {
			a.lost("handing over the call: " + err.Error())
			return err
		}
	}
	// 3. The answer. Its end ends the stream, and with it the sending of a
	// body that the function did not want.
	return a.answer()
}

func refuseClaim(err error) *wirev1.AttemptReply {
	reason := wirev1.Refused_REASON_NOT_WAITING
	if errors.Is(err, table.ErrBadToken) {
		reason = wirev1.Refused_REASON_BAD_TOKEN
	}
	return &wirev1.AttemptReply{Kind: &wirev1.AttemptReply_Refused{Refused: &wirev1.Refused{Reason: reason}}}
}

// grant sends the request, and starts to send its body if that is large.
func (a *attempt) grant() error {
	c := a.call
	granted := c.handOver(a.number)
	if err := a.send(&wirev1.AttemptReply{Kind: &wirev1.AttemptReply_Granted{Granted: granted}}); err != nil {
		return err
	}
	if !c.whole {
		c.body.replay.lend(a.number)
		go a.sendBody()
	}
	return nil
}

// sendBody copies the request's body to the instance: what an earlier attempt has read
// of it, and the rest as it comes.
func (a *attempt) sendBody() {
	if !a.call.body.replay.await(a.stream.Context()) {
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
			a.call.fail(tooSlow(invoke.ExecutedMaybe))
			defer a.call.cancel()
		}
		offset += n
		if left -= int64(n); left < 0 {
			a.call.fail(a.gateway.tooBig(invoke.ExecutedMaybe))
			err = errDetached
		} else if n > 0 {
			chunk := &wirev1.AttemptReply{Kind: &wirev1.AttemptReply_Body{Body: buffer[:n]}}
			if a.send(chunk) != nil {
				return
			}
		}
		if err != nil {
			end := &wirev1.BodyEnd{Aborted: !errors.Is(err, io.EOF)}
			_ = a.send(&wirev1.AttemptReply{Kind: &wirev1.AttemptReply_BodyEnd{BodyEnd: end}})
			return
		}
	}
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
			a.lost("the instance was lost during the call")
			return nil
		}
		over, err := a.take(msg)
		switch {
		case errors.Is(err, errNonsense):
			a.lost(err.Error())
			return status.Error(codes.InvalidArgument, err.Error())
		case over:
			return nil
		case err != nil && drop == nil:
			drop = time.AfterFunc(detachedGrace, a.cancel)
		}
	}
}

// take handles one message of the instance. Any error but errNonsense says that
// nobody hears the answer any more.
func (a *attempt) take(msg *wirev1.AttemptRequest) (over bool, err error) {
	switch kind := msg.GetKind().(type) {
	case *wirev1.AttemptRequest_Release:
		if a.headed {
			return false, errNonsense
		}
		a.release(kind.Release.GetReason())
		return true, nil
	case *wirev1.AttemptRequest_Head:
		if a.headed {
			return false, errNonsense
		}
		a.headed = true
		a.call.headed(kind.Head)
		return a.head(kind.Head)
	case *wirev1.AttemptRequest_Body:
		if !a.headed {
			return false, errNonsense
		}
		return false, a.call.write(kind.Body)
	case *wirev1.AttemptRequest_End:
		if !a.headed && kind.End.GetFailure() == nil {
			return false, errNonsense
		}
		a.call.executed(kind.End)
		a.finish(kind.End)
		return true, nil
	}
	return false, errNonsense
}

// head starts the answer, or is all of it.
func (a *attempt) head(head *wirev1.ResultHead) (over bool, err error) {
	if s := head.GetStatus(); s < 200 || s > 599 {
		a.end(newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, reasonBadAnswer,
			fmt.Sprintf("the function answered with the status %d, which is none", s)))
		return true, nil
	}
	if a.call.contradicts(head) {
		a.end(newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, reasonBadAnswer,
			fmt.Sprintf("the instance promised a body of %d bytes and sent one of %d", head.GetContentLength(), len(head.GetWholeBody()))))
		return true, nil
	}
	if head.GetWhole() && !a.forget() {
		return true, errDetached
	}
	a.gateway.config.ProblemDetail.trim(head)
	return head.GetWhole(), a.call.head(head, a.runBy)
}

// finish ends the answer, well or not.
func (a *attempt) finish(end *wirev1.ResultEnd) {
	failure := end.GetFailure()
	if failure == nil {
		a.forget()
		a.call.finish()
		return
	}
	switch failure.GetKind() {
	case wirev1.Failure_KIND_TIMED_OUT:
		a.end(timedOut(a.call.function))
	case wirev1.Failure_KIND_BODY_TOO_LARGE:
		a.end(newProblem(http.StatusRequestEntityTooLarge, a.untouched(), reasonBodyTooBig, failure.GetDetail()))
	case wirev1.Failure_KIND_BAD_ANSWER:
		a.end(newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, reasonBadAnswer, failure.GetDetail()))
	default:
		a.gone(reasonFunction, failure.GetDetail())
	}
}

// untouched is what can be said of a call of which this attempt's function has seen
// nothing: another one may have, if the call may run twice.
func (a *attempt) untouched() invoke.Executed {
	if a.headed || a.call.function.Spec.Idempotent && a.call.whole {
		return invoke.ExecutedMaybe
	}
	return invoke.ExecutedNo
}

// lost ends an attempt whose result will never come.
func (a *attempt) lost(detail string) { a.gone(reasonInstance, detail) }

// gone ends an attempt that was broken off. A function that may run twice is
// tried again.
func (a *attempt) gone(reason, detail string) {
	if a.call.function.Spec.Idempotent && a.call.whole && !a.headed && a.number < maxAttempts {
		a.requeue(true, reason)
		return
	}
	a.end(newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, reason, detail))
}

// end takes the invocation out of the table and answers with a problem. It does
// nothing if the attempt has ended already.
func (a *attempt) end(p problem) {
	if a.forget() {
		p.Attempt = a.number
		a.call.fail(p)
	}
}

// forget takes the invocation out of the table; false if the attempt was over.
func (a *attempt) forget() bool {
	a.gateway.mu.Lock()
	defer a.gateway.mu.Unlock()
	if a.gateway.table.End(a.call.id, a.number) != nil {
		return false
	}
	a.call.stay.leave()
	return true
}

// release queues the call again, for the function has seen nothing of it.
func (a *attempt) release(reason string) {
	if !a.call.body.replay.giveBack() {
		p := newProblem(http.StatusServiceUnavailable, invoke.ExecutedNo, reasonInstance,
			"the instance ended before it could start, and the request's body cannot be read twice: "+reason)
		p.retryAfter = time.Second
		a.end(p)
		return
	}
	a.requeue(false, reason)
}

// requeue queues the call again, and notes why the attempt did not end it. One that the
// function may have run has as much time to be taken again as a new call: it may have run
// for longer than calls wait. Any other keeps the time that it has left.
func (a *attempt) requeue(ran bool, why string) {
	g, c, now := a.gateway, a.call, time.Now()
	var queued table.Invocation[*call]
	var err error
	g.mu.Lock()
	if ran {
		queued, err = g.table.Retry(c.id, a.number, invoke.NewToken(), now, now.Add(g.config.MaxQueueTime))
	} else {
		queued, err = g.table.Release(c.id, a.number, invoke.NewToken(), now)
	}
	if err == nil {
		c.requeued(try{number: a.number, cid: a.cid, from: a.claimed, until: now, ran: ran, why: why})
	}
	g.mu.Unlock()
	switch {
	case err != nil:
		// Its time was up.
	case c.answered():
		// Its client left before it was queued again, and so did not
		// find it there.
		g.leaveQueue(c)
	case !now.Before(queued.Deadline):
		g.tooLate(c)
	default:
		g.offer(queued, now, true)
	}
}
