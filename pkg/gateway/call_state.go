package gateway

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// callState is the state of a call, under one lock: the core's invocation and the record of
// the call.
type callState struct {
	id invocation.ID
	// function is the called one, as of the time of the call.
	function *v1alpha1.Function
	// tag is that of the part of its traffic that was called, or "".
	tag string
	// maxQueueTime is how long it may wait.
	maxQueueTime time.Duration
	// ended is closed when its client has an answer or has left.
	ended chan struct{}

	mu         sync.Mutex // guards everything below; never held while anything waits
	to         destination
	invocation *core.Invocation
	times      timeline.Timeline
	cold       bool // it was the first of its instance
	status     int
	executed   invocation.Executed
	reason     string // of the problem that is the answer
	// problem is the answer if it is not the function's.
	problem *problem
	// attempt is the last one; nil before the first.
	attempt *claimant
	// earlier are the attempts before it that did not end the call.
	earlier []earlierAttempt
}

// event is an event of a call, applied to its invocation.
type event func(*core.Invocation) core.Decision

// decide applies an event to the call and returns the decision, which carryOut executes. If
// the call fails, p says why, unless the core knows.
func (l *callState) decide(e event, p problem) core.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	unanswered := !l.invocation.Answer().Final()
	d := e(l.invocation)
	if d.Fail {
		l.setProblem(p, d.Failure)
	}
	if unanswered && l.invocation.Answer().Final() {
		l.times.End(time.Now())
		close(l.ended) // the handler has the ResponseWriter from now on
	}
	return d
}

// setProblem stores the problem that is the answer. A call that was queued again because its
// instance was lost is answered with that loss. The caller holds the lock.
func (l *callState) setProblem(p problem, v core.Failure) {
	switch v.Cause {
	case core.CauseLate:
		p = newProblem(problems.NoInstanceInTime,
			fmt.Sprintf("no instance took the call within %v; see windlass describe %s", l.maxQueueTime, l.function.Key()))
	case core.CauseDeleted:
		p = newProblem(problems.FunctionDeleted, "the function was deleted while the call waited")
	case core.CauseTimedOut:
		p = timedOut(l.to.unit)
	case core.CauseStreamEnded:
		p = newProblem(problems.InstanceLost, "the instance was lost during the call")
	}
	if v.Lost != "" {
		p = newProblem(v.Lost, "the call was broken off and could not run again: "+p.Detail)
	}
	p.become(p.kind.Settled(v.Executed))
	p.Attempt = v.Attempt
	p.invocation, p.Instance = l.id.String(), "/calls/"+l.id.String()
	p.Function, p.revision = l.function.Key().String(), l.to.unit.FunctionRevisionName()
	l.status, l.executed, l.reason = p.Status, p.Executed, p.Reason
	l.problem = &p
}

// observation is the observed state of the ticket and the instance. due says that an audit may
// find something.
func (l *callState) observation(now time.Time, moved bool) (seen core.Observed, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen.Moved = moved
	seen.StreamEnded = l.invocation.Phase() == core.Claimed && l.attempt.stream.Context().Err() != nil
	return seen, seen.StreamEnded || l.invocation.Due(now, moved)
}

// destination is where the call goes.
func (l *callState) destination() destination {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to
}

// move assigns a waiting call to another unit, and returns the previous one.
func (l *callState) move(to destination, now time.Time) (from destination, d core.Decision) {
	fresh := invocation.NewToken()
	d = l.decide(func(v *core.Invocation) core.Decision {
		from = l.to
		d := v.Move(fresh, to.unit.Spec.Template.Timeout.Duration, now)
		if d.Offer {
			l.to = to
		}
		return d
	}, problem{})
	return from, d
}

// audit compares the recorded state of the call with the observed one.
func (l *callState) audit(now time.Time, seen core.Observed) core.Decision {
	var fresh invocation.Token
	if seen.StreamEnded {
		fresh = invocation.NewToken()
	}
	return l.decide(func(v *core.Invocation) core.Decision {
		claimed := v.Phase() == core.Claimed
		d := v.Audit(now, seen, fresh)
		if a := l.attempt; claimed && d.Offer {
			l.noteRequeue(earlierAttempt{number: a.number, cid: a.cid, from: a.claimed, until: now, ran: true, why: core.InstanceLost})
		}
		return d
	}, problem{})
}

// claim gives the call to an attempt.
func (l *callState) claim(a *claimant, token invocation.Token) (core.Grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	grant, err := l.invocation.Claim(now, token, a.cid)
	if err == nil {
		a.number, a.runBy, a.claimed = grant.Attempt, grant.RunBy, now
		l.attempt = a
		l.times.Claimed(now)
	}
	return grant, err
}

// currentAttempt is the latest attempt; nil before the first.
func (l *callState) currentAttempt() *claimant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempt
}

// beginAnswer takes the head of the function's answer; an error says that the client does not
// get it.
func (l *callState) beginAnswer(attempt int, head *agentwire.ResultHead) (core.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.invocation.Begin(attempt, head.GetWhole())
	if err == nil {
		l.status, l.executed, l.cold = int(head.GetStatus()), invocation.ExecutedYes, head.GetCold()
	}
	return d, err
}

// begun reports whether an attempt has sent the head of an answer.
func (l *callState) begun(attempt int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.invocation.Begun(attempt)
}

// noteRequeue records an attempt that did not end the call, which waits again. The caller
// holds the lock.
func (l *callState) noteRequeue(t earlierAttempt) {
	l.times.Requeued()
	if len(l.earlier) < maxEarlier {
		l.earlier = append(l.earlier, t)
	}
}

// answerWritten records that the rest of the function's answer was written, or never will be.
func (l *callState) answerWritten(whole bool) {
	l.decide(func(v *core.Invocation) core.Decision { v.Wrote(whole); return core.Decision{} }, problem{})
}

// answer is what the client has received, and the problem to send.
func (l *callState) answer() (core.Answer, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.invocation.Answer(), l.problem
}

// answered reports whether the answer is complete, or its client gone.
func (l *callState) answered() bool {
	a, _ := l.answer()
	return a.Final()
}

// answerBroken reports whether the client has no complete answer, and will get none.
func (l *callState) answerBroken() bool {
	a, _ := l.answer()
	return a == core.AnswerCut || a == core.AnswerAbandoned
}

// clientOutcome is the answer that the client got; codeLeft if it left before.
func (l *callState) clientOutcome() (code string, said invocation.Executed, cold bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == 0 {
		return strconv.Itoa(codeLeft), invocation.ExecutedMaybe, l.cold
	}
	return strconv.Itoa(l.status), l.executed, l.cold
}

// windlassFailed reports whether Windlass failed the call, or the call was broken off.
func (l *callState) windlassFailed() bool {
	if l.answerBroken() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason != "" && l.status >= 500
}

// updateTimes records the time of something in the call's timeline.
func (l *callState) updateTimes(what func(*timeline.Timeline)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what(&l.times)
}

// timeline is the timeline so far. That of a call that was answered or given up no longer
// changes.
func (l *callState) timeline() timeline.Timeline {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// headReceived records the times in the head of an answer.
func (l *callState) headReceived(head *agentwire.ResultHead) {
	now, exec := time.Now(), time.Duration(head.GetExecNs())
	l.updateTimes(func(t *timeline.Timeline) {
		t.Headed(now, time.Duration(head.GetBegunAfterNs()), exec)
		if head.GetWhole() {
			t.Executed(now, exec)
		}
	})
}

// executionEnded records how long the function has run.
func (l *callState) executionEnded(end *agentwire.ResultEnd) {
	now := time.Now()
	l.updateTimes(func(t *timeline.Timeline) { t.Executed(now, time.Duration(end.GetExecNs())) })
}

// maxEarlier is how many attempts that did not end a call are recorded of it.
const maxEarlier = 16

// earlierAttempt is an attempt that did not end the call.
type earlierAttempt struct {
	number      int
	cid         invocation.CID
	from, until time.Time
	// ran says that the function may have been handed the call.
	ran bool
	why string
}

// codeLeft stands for the status of a call whose client left before it was answered.
const codeLeft = 499

type attemptStream = grpc.BidiStreamingServer[agentwire.AttemptRequest, agentwire.AttemptReply]

// claimant is an instance that has claimed a call.
type claimant struct {
	cid    invocation.CID
	stream attemptStream
	// number, claimed and runBy, when it must have ended, come with the grant.
	number         int
	claimed, runBy time.Time

	sending sync.Mutex // guards Send, which must not be called twice at a time
}

func (a *claimant) sendReply(reply *agentwire.AttemptReply) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	return a.stream.Send(reply)
}

// cancel asks the instance to end the attempt, which ends its stream. An instance that reads
// nothing makes it wait until then.
func (a *claimant) cancel() {
	_ = a.sendReply(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Cancel{Cancel: &agentwire.Cancel{}}})
}
