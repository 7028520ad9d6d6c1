package core

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// InstanceLost is the reason of an attempt that ended at its instance without a word of the answer.
const InstanceLost = "InstanceLost"

// Grant is a granted claim, by a ticket or by a loan.
type Grant struct {
	// Attempt counts claims from 1 and names this one.
	Attempt int
	// RunBy is when it must have ended.
	RunBy time.Time
	// CancelTicket says that an earlier ticket may still be in a queue.
	CancelTicket bool
}

// Claim gives an invocation that waits to an instance. The error is ErrNotWaiting,
// ErrBadToken or nil.
func (v *Invocation) Claim(now time.Time, token invocation.Token, cid invocation.CID) (Grant, error) {
	switch {
	case v.phase != Queued:
		return Grant{}, ErrNotWaiting
	case !v.ticket.token.Equal(token) || cid == "":
		return Grant{}, v.Refusal(token)
	}
	return v.grant(now, 1), nil
}

// Refusal is why an instance that may not have the invocation is refused: ErrNotWaiting if it has an
// earlier ticket, which a scheduler may have handed out before the invocation got another one, and
// otherwise ErrBadToken.
func (v *Invocation) Refusal(token invocation.Token) error {
	if slices.ContainsFunc(v.ticket.earlier, token.Equal) {
		return ErrNotWaiting
	}
	return ErrBadToken
}

// ClaimByLoan gives an invocation that waits to an instance that has lent a pull to the
// gateway. The error is ErrNotWaiting or nil.
func (v *Invocation) ClaimByLoan(now time.Time) (Grant, error) {
	if v.phase != Queued {
		return Grant{}, ErrNotWaiting
	}
	return v.grant(now, 0), nil
}

// grant begins an attempt. used is how many of its tickets are in no queue any more.
func (v *Invocation) grant(now time.Time, used int) Grant {
	v.phase = Claimed
	v.current = attempt{number: v.current.number + 1, claimed: now, runBy: now.Add(v.spec.Timeout + RunGrace)}
	return Grant{Attempt: v.current.number, RunBy: v.current.runBy, CancelTicket: v.ticket.sent > used}
}

// isCurrent reports whether an attempt is the current one.
func (v *Invocation) isCurrent(attempt int) bool {
	return v.phase == Claimed && v.current.number == attempt
}

// Begin applies the head of the function's answer, which goes to the client unless there is an
// error; whole says that it is the complete answer. The error is ErrOver, ErrClientGone,
// ErrOutOfOrder or nil.
func (v *Invocation) Begin(attempt int, whole bool) (Decision, error) {
	switch {
	case v.current.number != attempt || attempt == 0:
		return Decision{}, ErrOver
	case v.current.begun:
		return Decision{}, ErrOutOfOrder
	}
	v.current.begun = true
	if v.phase != Claimed {
		return Decision{}, ErrOver
	}
	var d Decision
	if whole {
		d = v.end()
	}
	if v.answer != AnswerNone {
		return d, ErrClientGone
	}
	v.answer = AnswerBegun
	return d, nil
}

// Finish takes the end of an answer whose head has come. The error is ErrOver,
// ErrOutOfOrder or nil.
func (v *Invocation) Finish(attempt int) (Decision, error) {
	switch {
	case !v.isCurrent(attempt):
		return Decision{}, ErrOver
	case !v.current.begun:
		return Decision{}, ErrOutOfOrder
	}
	return v.end(), nil
}

// Fail ends an attempt that failed for good.
func (v *Invocation) Fail(attempt int) Decision {
	if !v.isCurrent(attempt) {
		return Decision{}
	}
	return v.fail(CauseGiven)
}

// RunTimeout ends an attempt whose time is up.
func (v *Invocation) RunTimeout(attempt int, now time.Time) Decision {
	if !v.isCurrent(attempt) || now.Before(v.current.runBy) {
		return Decision{}
	}
	d := v.fail(CauseTimedOut)
	d.Cancel = true
	return d
}

// FailUntouched is Fail for an attempt whose function has seen nothing of the request.
func (v *Invocation) FailUntouched(attempt int) Decision {
	d := v.Fail(attempt)
	if d.Fail && !v.started {
		d.Failure.Executed = invocation.ExecutedNo
	}
	return d
}

// Release queues an invocation again under a new token, for the function has seen
// nothing of it. It keeps the time that it has left, and its tries. If its body cannot be sent again,
// or MaxReleases instances have released it, it fails. The error is ErrOver, ErrOutOfOrder or nil.
func (v *Invocation) Release(attempt int, now time.Time, token invocation.Token, bodyKept bool) (Decision, error) {
	switch {
	case !v.isCurrent(attempt):
		return Decision{}, ErrOver
	case v.current.begun:
		return Decision{}, ErrOutOfOrder
	}
	if v.released++; !bodyKept || v.released >= MaxReleases {
		return v.FailUntouched(attempt), nil
	}
	v.untouched++
	return v.queueAgain(now, token), nil
}

// Decline is Release for an attempt that came too late to its instance, or never: another call had its
// place, or its connection broke. That takes nothing from MaxReleases.
func (v *Invocation) Decline(attempt int, now time.Time, token invocation.Token, bodyKept bool) (Decision, error) {
	if v.isCurrent(attempt) && !v.current.begun {
		v.released--
	}
	return v.Release(attempt, now, token, bodyKept)
}

// GiveUp is Release for an attempt that has waited for a core and was asked to give the invocation
// up. That takes nothing from the time that the invocation may wait, nor from MaxReleases.
func (v *Invocation) GiveUp(attempt int, now time.Time, token invocation.Token) (Decision, error) {
	if v.isCurrent(attempt) && !v.current.begun {
		v.released--
		v.ticket.deadline = v.ticket.deadline.Add(now.Sub(v.current.claimed))
	}
	return v.Release(attempt, now, token, true)
}

// Lose ends an attempt that was broken off, and says why. An invocation that may run
// twice is queued again under a new token, and has as long to be taken as a new one: the
// attempt may have run for longer than invocations wait. The error is ErrOver or nil.
func (v *Invocation) Lose(attempt int, now time.Time, token invocation.Token, why string) (Decision, error) {
	switch {
	case !v.isCurrent(attempt):
		return Decision{}, ErrOver
	case !v.spec.MayRepeat || v.current.begun || attempt-v.untouched >= MaxAttempts:
		return v.fail(CauseGiven), nil
	}
	v.started, v.lost = true, why
	if later := now.Add(v.spec.MaxQueueTime); v.ticket.deadline.Before(later) {
		v.ticket.deadline = later
	}
	return v.queueAgain(now, token), nil
}

// queueAgain queues it again, unless its client is gone or its deadline has passed.
func (v *Invocation) queueAgain(now time.Time, token invocation.Token) Decision {
	if v.answer.Final() {
		d := v.end()
		d.CancelTicket = true
		return d
	}
	v.phase = Queued
	d := v.ticket.renew(token, now)
	if late := v.QueueTimeout(now); late.End {
		return late
	}
	return d
}
