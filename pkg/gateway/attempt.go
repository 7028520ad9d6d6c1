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
	"github.com/windlass-dev/windlass/pkg/invoke"
)

const (
	// bodyChunk is how much of a large body one message carries.
	bodyChunk = 32 << 10
	// detachedGrace is how long an answer may go on that nobody hears.
	detachedGrace = 5 * time.Second
)

type attemptStream = grpc.BidiStreamingServer[wirev1.AttemptRequest, wirev1.AttemptReply]

// attempt is one granted claim.
type attempt struct {
	gateway *Gateway
	call    *call
	number  int
	stream  attemptStream
	sending sync.Mutex // guards Send, which must not be called twice at a time
}

func (a *attempt) send(reply *wirev1.AttemptReply) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	return a.stream.Send(reply)
}

// cancel tells the instance to end the attempt. Its stream then ends.
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
		g.metrics.claimRefused()
		return stream.Send(refuseClaim(err))
	}
	if granted.Reoffered {
		// Another ticket of the same call may still be in a queue.
		g.withdraw(id, string(granted.Payload.function.UID))
	}
	// 2. The request.
	a := &attempt{gateway: g, call: granted.Payload, number: granted.Attempt, stream: stream}
	timeout := a.call.function.Spec.Timeout.Duration
	a.call.start(time.Now().Add(timeout+runGrace), a.cancel)
	if err := a.grant(timeout); err != nil {
		a.lost("handing over the call: " + err.Error())
		return err
	}
	// 3. The answer.
	err = a.answer()
	// 4. The body's reader, which the end of the answer has woken.
	a.call.waitBody()
	return err
}

func refuseClaim(err error) *wirev1.AttemptReply {
	reason := wirev1.Refused_REASON_NOT_WAITING
	if errors.Is(err, table.ErrBadToken) {
		reason = wirev1.Refused_REASON_BAD_TOKEN
	}
	return &wirev1.AttemptReply{Kind: &wirev1.AttemptReply_Refused{Refused: &wirev1.Refused{Reason: reason}}}
}

// grant sends the request, and starts to send its body if that is large.
func (a *attempt) grant(timeout time.Duration) error {
	c := a.call
	granted := &wirev1.Granted{
		Attempt:       uint32(a.number),
		Method:        c.request.Method,
		RequestUri:    c.uri,
		Host:          c.request.Host,
		Headers:       requestHeaders(c.request, c),
		ContentLength: c.request.ContentLength,
		WholeBody:     c.small,
		Whole:         c.whole,
		RemainingNs:   int64(timeout),
	}
	if err := a.send(&wirev1.AttemptReply{Kind: &wirev1.AttemptReply_Granted{Granted: granted}}); err != nil {
		return err
	}
	if c.whole {
		return nil
	}
	body, done, ok := c.beginBody()
	if !ok {
		return errDetached
	}
	go func() {
		defer done()
		a.sendBody(body)
	}()
	return nil
}

// sendBody copies the request's body to the instance as it comes.
func (a *attempt) sendBody(body io.Reader) {
	left := a.gateway.config.MaxBody
	buffer := make([]byte, bodyChunk)
	for {
		n, err := body.Read(buffer)
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
		over := false
		switch kind := msg.GetKind().(type) {
		case *wirev1.AttemptRequest_Release:
			return a.release(kind.Release.GetReason())
		case *wirev1.AttemptRequest_Head:
			over, err = a.head(kind.Head)
		case *wirev1.AttemptRequest_Body:
			err = a.call.write(kind.Body)
		case *wirev1.AttemptRequest_End:
			a.finish(kind.End)
			over = true
		default:
			err = errors.New("the instance sent a message that makes no sense here")
			a.lost(err.Error())
			return status.Error(codes.InvalidArgument, err.Error())
		}
		if over {
			return nil
		}
		if err != nil && drop == nil {
			drop = time.AfterFunc(detachedGrace, a.cancel)
		}
	}
}

// head starts the answer, or is all of it.
func (a *attempt) head(head *wirev1.ResultHead) (over bool, err error) {
	if s := head.GetStatus(); s < 200 || s > 599 {
		a.end(newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, reasonBadAnswer,
			fmt.Sprintf("the function answered with the status %d, which is none", s)))
		return true, nil
	}
	if head.GetWhole() {
		a.forget()
	}
	return head.GetWhole(), a.call.head(head)
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
	case wirev1.Failure_KIND_BAD_ANSWER:
		a.end(newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, reasonBadAnswer, failure.GetDetail()))
	default:
		a.end(newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, reasonFunction, failure.GetDetail()))
	}
}

// lost ends an attempt whose result will never come.
func (a *attempt) lost(detail string) {
	a.end(newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, reasonInstance, detail))
}

// end takes the invocation out of the table and answers with a problem.
func (a *attempt) end(p problem) {
	a.forget()
	p.Attempt = a.number
	a.call.fail(p)
}

func (a *attempt) forget() {
	a.gateway.mu.Lock()
	defer a.gateway.mu.Unlock()
	// Only this attempt can end itself, so there is no error to see.
	_ = a.gateway.table.End(a.call.id, a.number)
}

// release queues the call again, for the function has seen nothing of it.
func (a *attempt) release(reason string) error {
	g, c := a.gateway, a.call
	if !c.bodyUnread() {
		p := newProblem(http.StatusServiceUnavailable, invoke.ExecutedNo, reasonInstance,
			"the instance ended before it could start, and the request's body cannot be read twice: "+reason)
		p.retryAfter = time.Second
		a.end(p)
		return nil
	}
	c.release()
	g.mu.Lock()
	_ = g.table.Release(c.id, a.number, invoke.NewToken())
	g.mu.Unlock()
	now := time.Now()
	g.reoffer(now, now)
	return nil
}
