package gateway

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// detachedGrace is how long an answer may go on after its client has left.
	detachedGrace = 5 * time.Second
	// cancelTimeout is how long an instance may take to end a cancelled attempt. Then it loses
	// its connection.
	cancelTimeout = 10 * time.Second
	// continueTimeout is how long a client that waits for 100 Continue, and whose function does
	// not say it, waits before its body is read anyway.
	continueTimeout = time.Second
)

// attempt is a call that an instance has, from its claim to the end of its answer. The reader
// of the instance's connection handles its frames.
type attempt struct {
	conn *agentConn
	pool *pool
	call *call
	unit *v1alpha1.Function
	// wire is the attempt's number on its connection, byLoan says that it took no ticket, and
	// lent that its place may stay with the gateway.
	wire         uint32
	byLoan, lent bool
	// number, claimed and runBy, when it must have ended, come with the grant.
	number         int
	claimed, runBy time.Time

	// came says that the instance has sent a frame about it. answer has the rest of an answer that is
	// not whole. Only the reader uses these.
	came   bool
	answer *callwire.Inflow
	// begun says that the head of the answer has come. The call may not have it yet.
	begun atomic.Bool
	// head is that of the answer. Nobody changes it once the call has it.
	head callwire.Head
	// waitsLong says that it waits for a core although it has come by a loan.
	waitsLong atomic.Bool
	// longWait is what the pool knows of that.
	longWait core.LongWait[*agentConn]
	// detached cancels the attempt some time after its client has left.
	detached *time.Timer
	// ended says that the instance has ended it, or is lost.
	ended atomic.Bool
	// frames are those that were sent.
	frames sentFrames
	// upload is set if the request's body is sent in frames of its own.
	upload *upload
}

// sentFrames keeps a Cancel behind its Call: sent says that the call was sent, and cancelled that
// a Cancel was, or follows it. The lock of the connection guards them.
type sentFrames struct{ sent, cancelled bool }

// abort answers the client because of its body. stop says that the instance should stop.
func (a *attempt) abort(p problem, stop bool) {
	a.update(func(v *core.Invocation) core.Decision { return v.Abort(stop) }, p)
}

func (a *attempt) update(e event, p problem) { a.conn.shell.step(a.call, e, p) }

// onFrame handles a frame of the instance. An error ends its connection.
func (a *attempt) onFrame(f callwire.Frame) error {
	a.came = true
	switch f.Kind {
	case callwire.KindHead:
		head, err := callwire.ParseHead(f)
		if err != nil {
			return err
		}
		return a.onHead(head)
	case callwire.KindBody:
		return a.onBody(f.Payload)
	case callwire.KindEnd:
		end, err := callwire.ParseEnd(f)
		if err != nil {
			return err
		}
		return a.onEnd(end)
	case callwire.KindRelease:
		release, err := callwire.ParseRelease(f)
		if err != nil {
			return err
		}
		return a.onRelease(release)
	case callwire.KindLongWait:
		waited, err := callwire.ParseLongWait(f)
		if err == nil {
			a.onLongWait(waited > 0)
		}
		return err
	}
	n, err := callwire.ParseCount(f)
	if err == nil && a.upload != nil {
		a.upload.out.Open(n)
	}
	return err
}

// onHead starts the answer, or is all of it. The place of an answer that is complete goes to
// the next call before anything else.
func (a *attempt) onHead(came callwire.Head) error {
	if a.begun.Load() {
		return a.breakOff()
	}
	if !came.Whole {
		came.Body = nil // it is part of the connection's buffer, which would stay with the head
	}
	if isInterim(came.Status) && !came.Whole {
		if a.upload != nil && came.Status == http.StatusContinue {
			a.startUpload()
		}
		a.call.interimReceived(a, came)
		return nil
	}
	a.begun.Store(true)
	a.head = came
	head := &a.head
	if head.Whole {
		// The payload is valid until the next frame is read.
		head.Body = append([]byte(nil), head.Body...)
		if a.leaveConn() {
			a.freePlace(head.Keeps, head.Exec)
		}
	} else {
		a.answer = callwire.NewInflow(a.conn.frames, a.wire)
	}
	a.call.headReceived(head)
	p := a.call.client.badHead(head)
	if p == nil {
		p = a.conn.gateway.roomForAnswer(a.call, answerMemory(head))
	}
	refused := p != nil
	if refused {
		a.fail(*p)
	} else {
		a.conn.gateway.config.ProblemDetail.trimStack(head)
		d, err := a.call.beginAnswer(a, head)
		a.conn.shell.carryOut(a.call, d)
		refused = err != nil
	}
	if refused {
		// Nothing counts the memory of a head that the client does not get, and the attempt may go on.
		a.head = callwire.Head{CoreWait: head.CoreWait}
		a.detach()
	}
	return nil
}

// onBody passes on more of the answer.
func (a *attempt) onBody(part []byte) error {
	if a.answer == nil {
		return a.breakOff()
	}
	if a.detached == nil && a.call.answered() {
		a.detach()
	}
	return a.answer.Push(part)
}

// onEnd ends the answer, well or not.
func (a *attempt) onEnd(end callwire.End) error {
	if end.Failure == 0 && !a.begun.Load() {
		return a.breakOff()
	}
	a.call.executionEnded(end.Exec)
	if a.leaveConn() {
		a.freePlace(end.Keeps, end.Exec)
	}
	switch end.Failure {
	case 0:
		if p := a.badTrailers(end.Trailer); p != nil {
			a.fail(*p)
			break
		}
		a.answer.End(io.EOF, end.Trailer)
		a.update(func(v *core.Invocation) core.Decision { d, _ := v.Finish(a.number); return d }, problem{})
		return nil
	case callwire.FailureTimedOut:
		a.fail(timedOut(a.unit))
	case callwire.FailureBodyTooLarge:
		a.failUntouched(newProblem(problems.BodyTooLarge, end.Detail))
	case callwire.FailureUnsendable:
		a.failUntouched(newProblem(problems.Unsendable, end.Detail))
	case callwire.FailureTooLate:
		a.failUntouched(newProblem(whyTooLate(a), end.Detail))
	case callwire.FailureBadAnswer:
		a.fail(newProblem(problems.BadAnswer, end.Detail))
	default:
		a.lose(problems.FunctionLost, end.Detail)
	}
	a.cutAnswer()
	return nil
}

// badTrailers is why the client does not get the trailers of an answer; nil if it does.
func (a *attempt) badTrailers(trailers []callwire.Field) *problem {
	if fieldsBytes(trailers) > maxHeadBytes {
		return new(newProblem(problems.BadAnswer, fmt.Sprintf("the function ended its answer with more than %d bytes of trailers", maxHeadBytes)))
	}
	return a.conn.gateway.roomForAnswer(a.call, trailerMemory(trailers))
}

// failUntouched ends the call with a problem. The function has seen nothing of it.
func (a *attempt) failUntouched(why problem) {
	a.update(func(v *core.Invocation) core.Decision { return v.FailUntouched(a.number) }, why)
}

// whyTooLate is why a call ran out of time before the function got it. One by a loan whose body came
// whole has waited for a core, also if its time was too short to say so.
func whyTooLate(a *attempt) string {
	if a.waitsLong.Load() || a.byLoan && a.call.whole {
		return problems.NoInstanceInTime
	}
	return problems.BodyTooSlow
}

// onRelease queues the call again, because the function has seen nothing of it.
func (a *attempt) onRelease(release callwire.Release) error {
	if a.begun.Load() {
		return a.breakOff()
	}
	if a.leaveConn() {
		// First the call: it is before all that came later.
		switch {
		case a.waitsLong.Load() && a.call.whole:
			a.giveUp(release.Reason)
		case release.NoCredit:
			a.handBack(release.Reason, (*core.Invocation).Decline)
		default:
			a.handBack(release.Reason, (*core.Invocation).Release)
		}
		a.freePlace(release.Keeps || release.NoCredit, 0)
	}
	return nil
}

// onLongWait notes whether the call waits for a core of a busy node. It is asked for if its client has
// left, or if another instance has a core for it and its request is here whole to be sent again.
func (a *attempt) onLongWait(waits bool) {
	if !a.byLoan || a.begun.Load() {
		return
	}
	a.waitsLong.Store(waits)
	if waits && a.call.answered() {
		a.conn.askToGiveUp(a.wire)
	}
	if !a.call.whole {
		return
	}
	a.conn.shell.change(a.pool, a.conn, func(pulls *lentPulls) {
		if waits {
			pulls.BeginWait(&a.longWait)
		} else {
			pulls.EndWait(&a.longWait)
		}
	})
}

// breakOff ends the connection of an instance that sends what makes no sense.
func (a *attempt) breakOff() error {
	a.conn.removeAttempt(a)
	a.markEnded()
	a.lose(problems.InstanceLost, core.ErrOutOfOrder.Error())
	a.cutAnswer()
	return fmt.Errorf("%w: a frame of call %d came out of order", callwire.ErrFrame, a.wire)
}

// leaveConn takes the attempt from its connection; false if it has left before.
func (a *attempt) leaveConn() bool {
	if !a.conn.removeAttempt(a) {
		return false
	}
	a.markEnded()
	return true
}

// freePlace frees the attempt's place at its instance. If the place stays with the gateway, the
// next call gets it.
func (a *attempt) freePlace(keeps bool, took time.Duration) {
	if !a.lent {
		if keeps { // it was not asked to
			a.conn.returnPlaces(1)
		}
		return
	}
	a.conn.shell.change(a.pool, a.conn, func(pulls *lentPulls) {
		if a.byLoan && took > 0 {
			pulls.CountExecution(took, a.head.CoreWait)
		}
		pulls.EndWait(&a.longWait)
		pulls.Ended(a.conn.lender, keeps)
	})
}

// markEnded says that the instance has nothing of the attempt any more, and stops what runs for it here.
func (a *attempt) markEnded() {
	a.ended.Store(true)
	if a.detached != nil {
		a.detached.Stop()
	}
	if a.upload != nil {
		if a.upload.late != nil {
			a.upload.late.Stop()
		}
		a.upload.out.End(nil)
		close(a.upload.over)
	}
}

// cutAnswer ends an answer that has begun and whose rest will not come.
func (a *attempt) cutAnswer() {
	if a.answer != nil {
		a.answer.End(io.ErrUnexpectedEOF, nil)
	}
}

// detach drops the rest of an answer that nobody waits for, and cancels the attempt if it goes
// on for long.
func (a *attempt) detach() {
	if a.answer != nil {
		a.answer.Discard()
	}
	if a.detached == nil && !a.ended.Load() {
		a.detached = time.AfterFunc(detachedGrace, a.cancel)
	}
}

// cancel asks the instance to end the attempt. One that does not do so in time loses its
// connection.
func (a *attempt) cancel() {
	if a.ended.Load() || !a.conn.mayCancel(a) {
		return
	}
	frames := a.conn.frames
	frames.CommitLater(callwire.AppendFrame(frames.Begin(), callwire.KindCancel, 0, a.wire, nil))
	frames.FlushLater()
	time.AfterFunc(cancelTimeout, func() {
		if !a.ended.Load() {
			frames.Close()
		}
	})
}

// fail ends the attempt and answers with a problem. It does nothing if the attempt has
// ended already.
func (a *attempt) fail(p problem) {
	a.update(func(v *core.Invocation) core.Decision { return v.Fail(a.number) }, p)
}

// lose ends an attempt that was broken off. A function that may run twice is tried again.
func (a *attempt) lose(reason, detail string) {
	a.requeue(true, reason, newProblem(reason, detail), func(v *core.Invocation, now time.Time) (core.Decision, error) {
		return v.Lose(a.number, now, invocation.NewToken(), reason)
	})
}

// handBack queues the call again, because the function has seen nothing of it. end is Release, or
// Decline for a call that came too late to its instance, or never.
func (a *attempt) handBack(reason string, end func(*core.Invocation, int, time.Time, invocation.Token, bool) (core.Decision, error)) {
	kept := a.call.whole || a.call.client.body.replay.giveBack()
	why := fmt.Sprintf("%d instances have released the call without running it; the last one said: ", core.MaxReleases)
	if !kept {
		why = "the instance ended before it could start, and the request's body cannot be read twice: "
	}
	a.requeue(false, reason, newProblem(problems.InstanceLeft, why+reason), func(v *core.Invocation, now time.Time) (core.Decision, error) {
		return end(v, a.number, now, invocation.NewToken(), kept)
	})
}

// giveUp queues a call again that has waited for a core. The credit that waits for it stays with it
// until enqueueAt.
func (a *attempt) giveUp(reason string) {
	a.call.noteGivenUp(a)
	a.requeue(false, reason, problem{}, func(v *core.Invocation, now time.Time) (core.Decision, error) {
		return v.GiveUp(a.number, now, invocation.NewToken())
	})
}

// instanceLost ends an attempt whose instance was lost.
func (a *attempt) instanceLost() {
	a.markEnded()
	a.lose(problems.InstanceLost, "the instance was lost during the call")
	a.cutAnswer()
}

// mayNotHaveCome reports whether the call may not have come to its instance.
func (a *attempt) mayNotHaveCome() bool { return a.byLoan && !a.came }

// neverCame ends an attempt whose call never came to its instance.
func (a *attempt) neverCame() {
	a.markEnded()
	a.handBack("the connection broke before the instance had the call", (*core.Invocation).Decline)
}

// requeue ends the attempt without an answer. If that queues the call again, it logs why; ran
// says that the function may have run.
func (a *attempt) requeue(ran bool, why string, p problem, end func(*core.Invocation, time.Time) (core.Decision, error)) {
	now := time.Now()
	a.update(func(v *core.Invocation) core.Decision {
		d, _ := end(v, now)
		if d.Wait {
			a.call.noteRequeue(earlierAttempt{number: a.number, cid: a.conn.cid, from: a.claimed, until: now, ran: ran, why: invocation.Excerpt(why)})
		}
		return d
	}, p)
}

// isInterim reports whether more heads follow one with a status.
func isInterim(status int) bool {
	return status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
}
