package gateway

import (
	"fmt"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
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
	// changed holds an element if the handler may not have seen that a head, or an interim one,
	// waits for it, or that the client has an answer or has left.
	changed chan struct{}

	mu         sync.Mutex // guards everything below; never held while anything waits
	to         destination
	invocation core.Invocation
	times      timeline.Timeline
	cold       bool // it was the first of its instance
	status     int
	executed   invocation.Executed
	reason     string // of the problem that is the answer, or that cut the answer
	// problem is the answer if it is not the function's.
	problem *problem
	// attempt is the last one; nil before the first.
	attempt *attempt
	// interim are the interim answers that the client has not got yet, head is the head of the
	// answer if the client has not got it yet, and body the rest of an answer that is not whole.
	interim []callwire.Head
	head    *callwire.Head
	body    *callwire.Inflow
	// coreWaited is how long it waited for cores at instances that gave it up.
	coreWaited time.Duration
	// earlier are the attempts before the last one. They did not end the call.
	earlier []earlierAttempt
}

// event is an event of a call, applied to its invocation.
type event func(*core.Invocation) core.Decision

// decide applies an event to the call and returns the decision, which carryOut executes. If
// the call fails, p says why, unless the core knows.
func (s *callState) decide(e event, p problem) core.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	unanswered := !s.invocation.Answer().Final()
	d := e(&s.invocation)
	if d.Fail || d.Cut {
		s.setProblem(p, d)
	}
	if unanswered && s.invocation.Answer().Final() {
		s.times.End(time.Now())
		signal(s.changed)
		if s.body != nil {
			s.body.Discard() // so that the handler waits for no more of it
		}
	}
	return d
}

// setProblem stores the problem that is the answer, or why the answer is cut. A call that was
// queued again because its instance was lost is answered with that loss. The caller holds the lock.
func (s *callState) setProblem(p problem, d core.Decision) {
	v := d.Failure
	switch v.Cause {
	case core.CauseLate:
		p = newProblem(problems.NoInstanceInTime,
			fmt.Sprintf("no instance took the call within %v; see windlass describe %s", s.invocation.Spec().MaxQueueTime, s.function.Key()))
	case core.CauseDeleted:
		p = newProblem(problems.FunctionDeleted, "the function was deleted while the call waited")
	case core.CauseTimedOut:
		p = timedOut(s.to.unit)
	case core.CauseLost:
		p = newProblem(problems.InstanceLost, "the instance was lost during the call")
	}
	if v.Lost != "" {
		p = newProblem(v.Lost, "the call was broken off and could not run again: "+p.Detail)
	}
	p.become(p.kind.Settled(v.Executed))
	s.reason = p.Reason
	if d.Cut {
		return // the client has the head
	}
	p.Attempt = v.Attempt
	p.invocation, p.Instance = s.id.String(), "/calls/"+s.id.String()
	p.Function, p.revision = s.function.Key().String(), s.to.unit.FunctionRevisionName()
	s.status, s.executed = p.Status, p.Executed
	s.problem = &p
}

// observation is the observed state of the ticket and the instance. due says that an audit may
// find something.
func (s *callState) observation(now time.Time, moved bool) (seen core.Observed, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen.Moved = moved
	// One whose answer has come is none that was lost, however long its reader frees the place first.
	seen.Ended = s.invocation.Phase() == core.Claimed && s.attempt.ended.Load() && !s.attempt.begun.Load()
	return seen, seen.Ended || s.invocation.Due(now, moved)
}

// destination is where the call goes.
func (s *callState) destination() destination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to
}

// move assigns a waiting call to another unit, and returns the previous one.
func (s *callState) move(to destination, now time.Time) (from destination, d core.Decision) {
	fresh := invocation.NewToken()
	d = s.decide(func(v *core.Invocation) core.Decision {
		from = s.to
		d := v.Move(fresh, to.unit.Spec.Template.Timeout.Duration, now)
		if d.Wait {
			s.to = to
		}
		return d
	}, problem{})
	return from, d
}

// audit compares the recorded state of the call with the observed one.
func (s *callState) audit(now time.Time, seen core.Observed) core.Decision {
	var fresh invocation.Token
	if seen.Ended {
		fresh = invocation.NewToken()
	}
	return s.decide(func(v *core.Invocation) core.Decision {
		claimed := v.Phase() == core.Claimed
		d := v.Audit(now, seen, fresh)
		if a := s.attempt; claimed && d.Wait {
			s.noteRequeue(earlierAttempt{number: a.number, cid: a.conn.cid, from: a.claimed, until: now, ran: true, why: core.InstanceLost})
		}
		return d
	}, problem{})
}

// claim gives the call to an attempt, if grant does.
func (s *callState) claim(a *attempt, grant func(*core.Invocation) (core.Grant, error), now time.Time) (core.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	granted, err := grant(&s.invocation)
	if err == nil {
		a.number, a.runBy, a.claimed = granted.Attempt, granted.RunBy, now
		s.attempt = a
		s.times.Claimed(now)
	}
	return granted, err
}

// refusal is why an instance of another unit is refused.
func (s *callState) refusal(token invocation.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.invocation.Refusal(token)
}

// queued reports whether the call waits for an instance.
func (s *callState) queued() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.invocation.Phase() == core.Queued
}

// waitsAt reports whether the call waits for an instance of a destination's revision, and returns its
// last attempt, which has ended then; nil if there was none.
func (s *callState) waitsAt(at destination) (last *attempt, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempt, s.invocation.Phase() == core.Queued && s.to.unit == at.unit
}

// currentAttempt is the latest attempt; nil before the first.
func (s *callState) currentAttempt() *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempt
}

// currentConn is the connection of the latest attempt; nil before the first.
func (s *callState) currentConn() *agentConn {
	if a := s.currentAttempt(); a != nil {
		return a.conn
	}
	return nil
}

// maxInterim is how many interim answers wait for a client. Further ones are dropped, and large ones.
const maxInterim = 16

// interimReceived stores an interim answer for the handler.
func (s *callState) interimReceived(a *attempt, head callwire.Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempt == a && len(s.interim) < maxInterim && headBytes(&head) <= maxInterimBytes && s.invocation.Answer() == core.AnswerNone {
		s.interim = append(s.interim, head)
		signal(s.changed)
	}
}

// beginAnswer takes the head of the function's answer for the handler; an error says that the
// client does not get it.
func (s *callState) beginAnswer(a *attempt, head *callwire.Head) (core.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.invocation.Begin(a.number, head.Whole)
	if err == nil {
		s.status, s.executed, s.cold = head.Status, invocation.ExecutedYes, head.Cold
		s.head, s.body = head, a.answer
		signal(s.changed)
	}
	return d, err
}

// takeHead takes what has come for the client since the last time. head is nil if the answer
// has not begun.
func (s *callState) takeHead() (interim []callwire.Head, head *callwire.Head, by *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	interim, head = s.interim, s.head
	s.interim, s.head = nil, nil
	return interim, head, s.attempt
}

// answerBody is the rest of an answer that has begun; nil if it was whole.
func (s *callState) answerBody() *callwire.Inflow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body
}

// noteRequeue records an attempt that did not end the call, which waits again. The caller
// holds the lock.
func (s *callState) noteRequeue(t earlierAttempt) {
	s.times.Requeued()
	if len(s.earlier) < maxEarlier {
		s.earlier = append(s.earlier, t)
	}
}

// noteGivenUp records how long the call has waited for a core at an instance that gave it up.
func (s *callState) noteGivenUp(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coreWaited += time.Since(a.claimed)
}

// waitedForCores is how long the call has waited for cores at instances that gave it up.
func (s *callState) waitedForCores() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.coreWaited
}

// answerWritten records that the rest of the function's answer was written, or never will be.
func (s *callState) answerWritten(whole bool) {
	var why problem
	if !whole {
		why = newProblem(problems.BadAnswer, "the answer is not as long as its head says")
	}
	s.decide(func(v *core.Invocation) core.Decision { return v.Wrote(whole) }, why)
}

// answer is what the client has received, and the problem to send.
func (s *callState) answer() (core.Answer, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.invocation.Answer(), s.problem
}

// answered reports whether the answer is complete, or its client gone.
func (s *callState) answered() bool {
	a, _ := s.answer()
	return a.Final()
}

// answerBroken reports whether the client has no complete answer, and will get none.
func (s *callState) answerBroken() bool {
	a, _ := s.answer()
	return a == core.AnswerCut || a == core.AnswerAbandoned
}

// callEnd is what is known of a call that was answered or given up.
type callEnd struct {
	outcome
	cold bool
	// cut is why the answer broke off after its head; empty if it did not, or if the client left.
	cut string
	// failed says that Windlass failed the call, or that it was broken off.
	failed bool
	times  timeline.Timeline
}

// callEnd is the end of a call. Its outcome is the answer that the client got, or its head; codeLeft if it
// left before.
func (s *callState) callEnd() callEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := callEnd{outcome: outcome{s.to.unit.Revision(), codeLeft, invocation.ExecutedMaybe}, cold: s.cold, times: s.times}
	switch {
	case s.status != 0:
		e.code, e.executed = s.status, s.executed
	case s.attempt == nil:
		e.executed = invocation.ExecutedNo
	}
	switch s.invocation.Answer() {
	case core.AnswerCut:
		e.cut, e.failed = s.reason, true
	case core.AnswerAbandoned:
		e.failed = true
	default:
		e.failed = s.reason != "" && s.status >= 500
	}
	return e
}

// updateTimes records the time of something in the call's timeline.
func (s *callState) updateTimes(what func(*timeline.Timeline)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what(&s.times)
}

// timeline is the timeline so far. That of a call that was answered or given up no longer
// changes.
func (s *callState) timeline() timeline.Timeline {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times
}

// headReceived records the times in the head of an answer.
func (s *callState) headReceived(head *callwire.Head) {
	now := time.Now()
	s.updateTimes(func(t *timeline.Timeline) {
		t.Headed(now, head.BegunAfter, head.Exec, head.CoreWait)
		if head.Whole {
			t.Executed(now, head.Exec)
		}
	})
}

// executionEnded records how long the function has run.
func (s *callState) executionEnded(took time.Duration) {
	now := time.Now()
	s.updateTimes(func(t *timeline.Timeline) { t.Executed(now, took) })
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
