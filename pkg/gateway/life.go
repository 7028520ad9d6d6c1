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

// life is what becomes of a call, under one lock: what is decided about it, which the
// core does, and what was noted of it.
type life struct {
	id invocation.ID
	// function is the one that is called, as it was when it was.
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
	said       invocation.Executed
	reason     string // of the problem that is the answer
	// problem is the answer if it is not the function's.
	problem *problem
	// attempt is the last one; nil before the first.
	attempt *claimant
	// tries are the attempts before it that did not end the call.
	tries []try
}

// event is what happens to a call.
type event func(*core.Invocation) core.Decision

// decide lets an event happen to a call and returns what follows; carryOut does it. If
// the call fails, p says why, unless the core knows.
func (l *life) decide(e event, p problem) core.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	unanswered := !l.invocation.Answer().Final()
	d := e(l.invocation)
	if d.Fail {
		l.failed(p, d.Verdict)
	}
	if unanswered && l.invocation.Answer().Final() {
		l.times.End(time.Now())
		close(l.ended) // the handler has the ResponseWriter from now on
	}
	return d
}

// failed stores the problem that is the answer. A call that was queued again, because
// the instance that had it was lost, is answered with that loss. The caller holds the
// lock.
func (l *life) failed(p problem, v core.Verdict) {
	switch v.Cause {
	case core.CauseLate:
		p = newProblem(problems.NoInstanceInTime,
			fmt.Sprintf("no instance took the call within %v; see windlass describe %s", l.maxQueueTime, l.function.Key()))
	case core.CauseDeleted:
		p = newProblem(problems.FunctionDeleted, "the function was deleted while the call waited")
	case core.CauseOverran:
		p = timedOut(l.to.unit)
	case core.CauseSilent:
		p = newProblem(problems.InstanceLost, "the instance was lost during the call")
	}
	if v.Lost != "" {
		p = newProblem(v.Lost, "the call was broken off and could not run again: "+p.Detail)
	}
	p.become(p.kind.Settled(v.Executed))
	p.Attempt = v.Attempt
	p.invocation, p.Instance = l.id.String(), "/calls/"+l.id.String()
	p.Function, p.revision = l.function.Key().String(), l.to.unit.FunctionRevisionName()
	l.status, l.said, l.reason = p.Status, p.Executed, p.Reason
	l.problem = &p
}

// observe is what is seen of its ticket and its instance, and whether an audit may find
// something.
func (l *life) observe(now time.Time, moved bool) (seen core.Observed, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen.Moved = moved
	seen.Silent = l.invocation.Phase() == core.Claimed && l.attempt.stream.Context().Err() != nil
	return seen, seen.Silent || l.invocation.Due(now, moved)
}

// destination is where the call goes.
func (l *life) destination() destination {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to
}

// move lets a call that waits go to another unit, from the one that it had.
func (l *life) move(to destination, now time.Time) (from destination, d core.Decision) {
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

// audit compares what is believed of the call with what is seen.
func (l *life) audit(now time.Time, seen core.Observed) core.Decision {
	var fresh invocation.Token
	if seen.Silent {
		fresh = invocation.NewToken()
	}
	return l.decide(func(v *core.Invocation) core.Decision {
		claimed := v.Phase() == core.Claimed
		d := v.Audit(now, seen, fresh)
		if a := l.attempt; claimed && d.Offer {
			l.requeued(try{number: a.number, cid: a.cid, from: a.claimed, until: now, ran: true, why: core.InstanceLost})
		}
		return d
	}, problem{})
}

// claim gives the call to an attempt.
func (l *life) claim(a *claimant, token invocation.Token) (core.Grant, error) {
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

// present is the last attempt; nil before the first.
func (l *life) present() *claimant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempt
}

// begin takes the head of the function's answer; an error says that the client does not
// get it.
func (l *life) begin(attempt int, head *agentwire.ResultHead) (core.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.invocation.Begin(attempt, head.GetWhole())
	if err == nil {
		l.status, l.said, l.cold = int(head.GetStatus()), invocation.ExecutedYes, head.GetCold()
	}
	return d, err
}

// begun tells whether an attempt has sent the head of an answer.
func (l *life) begun(attempt int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.invocation.Begun(attempt)
}

// requeued writes down that an attempt did not end the call, which waits again. The
// caller holds the lock.
func (l *life) requeued(t try) {
	l.times.Requeued()
	if len(l.tries) < maxTries {
		l.tries = append(l.tries, t)
	}
}

// wrote notes that all was written of the function's answer that will be.
func (l *life) wrote(whole bool) {
	l.decide(func(v *core.Invocation) core.Decision { v.Wrote(whole); return core.Decision{} }, problem{})
}

// answer is what the client has, and the problem that it is to get.
func (l *life) answer() (core.Answer, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.invocation.Answer(), l.problem
}

// answered tells whether nobody waits for an answer any more.
func (l *life) answered() bool {
	a, _ := l.answer()
	return a.Final()
}

// broken tells whether the client has no whole answer, and will have none.
func (l *life) broken() bool {
	a, _ := l.answer()
	return a == core.AnswerCut || a == core.AnswerUnheard
}

// outcome is what the client was told; codeLeft if it left before.
func (l *life) outcome() (code string, said invocation.Executed, cold bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == 0 {
		return strconv.Itoa(codeLeft), invocation.ExecutedMaybe, l.cold
	}
	return strconv.Itoa(l.status), l.said, l.cold
}

// unserved tells whether Windlass failed a call, or it was broken off.
func (l *life) unserved() bool {
	if l.broken() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason != "" && l.status >= 500
}

// happened writes down that something happened to a call.
func (l *life) happened(what func(*timeline.Timeline)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what(&l.times)
}

// timeline is what is known by now of when it was where. Nothing is added to that of a
// call that is answered or given up.
func (l *life) timeline() timeline.Timeline {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// headed takes note of the times that the head of an answer tells.
func (l *life) headed(head *agentwire.ResultHead) {
	now, exec := time.Now(), time.Duration(head.GetExecNs())
	l.happened(func(t *timeline.Timeline) {
		t.Headed(now, time.Duration(head.GetBegunAfterNs()), exec)
		if head.GetWhole() {
			t.Executed(now, exec)
		}
	})
}

// executed takes note of how long the function has run.
func (l *life) executed(end *agentwire.ResultEnd) {
	now := time.Now()
	l.happened(func(t *timeline.Timeline) { t.Executed(now, time.Duration(end.GetExecNs())) })
}

// maxTries is how many attempts that did not end a call are remembered of it.
const maxTries = 16

// try is an attempt that did not end the call.
type try struct {
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

func (a *claimant) send(reply *agentwire.AttemptReply) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	return a.stream.Send(reply)
}

// cancel tells the instance to end the attempt. Its stream then ends. An
// instance that reads nothing makes it wait until then.
func (a *claimant) cancel() {
	_ = a.send(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Cancel{Cancel: &agentwire.Cancel{}}})
}
