package core

import (
	"errors"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// MaxAttempts is how often an invocation of an idempotent function is tried.
	MaxAttempts = 3
	// MaxReleases is how many instances may release an invocation. Each of them has ended, or has kept
	// it for the function's timeout, so that many say that no other will run it.
	MaxReleases = 16
	// RunGrace is how much longer than the function's timeout an attempt may take,
	// since the instance reports a timeout better than the gateway.
	RunGrace = 2 * time.Second
	// ReofferAfter is how long a ticket may go unclaimed before it is offered again: a
	// lost message costs a call at most this long, and up to ReofferEvery.
	ReofferAfter = time.Second
	// ReofferEvery is how often the gateway looks for tickets to offer again.
	ReofferEvery = 250 * time.Millisecond
	// AskAfter is how long a call may wait for a loan before it sends its first ticket, if it is
	// one of the AskFirst that have waited longest. It is as long as schedulers let calls wait
	// before these count as stale.
	AskAfter = 100 * time.Millisecond
	// AskFirst is for how many calls of a revision a gateway asks then. They stand for the others:
	// if an instance takes one of their tickets, all ask. Where loans are used all the time, and
	// calls wait because they are many, most are handed over without a ticket.
	AskFirst = 16
	// AskAllAfter is how long a call may wait before it sends its first ticket in any case.
	AskAllAfter = 500 * time.Millisecond
	// ReofferSoon is how soon a ticket is offered again that a scheduler could not
	// take: another one may not know yet that it can.
	ReofferSoon = 50 * time.Millisecond
)

var (
	// ErrNotWaiting says that an invocation is claimed already, or has ended, or that the ticket is not
	// its last one.
	ErrNotWaiting = errors.New("gateway: the invocation is not waiting")
	// ErrBadToken says that a claim has a token that no ticket of the invocation had.
	ErrBadToken = errors.New("gateway: wrong claim token")
	// ErrOver says that an attempt has ended already.
	ErrOver = errors.New("gateway: the attempt is over")
	// ErrClientGone says that the client no longer waits for the answer.
	ErrClientGone = errors.New("gateway: the client is gone")
	// ErrOutOfOrder says that an instance sent what makes no sense where it came.
	ErrOutOfOrder = errors.New("gateway: the instance sent a message that makes no sense here")
)

// Phase is where an invocation is.
type Phase uint8

// The phases.
const (
	Admitted Phase = iota // its request is being read
	Queued                // it waits for an instance
	Claimed               // an instance has it
	Ended                 // no instance has it, and none will
)

// Answer is what the client has.
type Answer uint8

// The answers. All but the first two are final.
const (
	AnswerNone      Answer = iota // nothing so far
	AnswerBegun                   // the head of the function's answer
	AnswerComplete                // all of an answer
	AnswerCut                     // a part of an answer, and never the rest
	AnswerAbandoned               // nothing, or a part: the client left
)

// Final reports whether the answer is complete, or will never be.
func (a Answer) Final() bool { return a >= AnswerComplete }

// Spec is what an invocation is admitted with.
type Spec struct {
	Admitted time.Time
	// MaxQueueTime is how long it may wait, and how long a retry may wait again.
	MaxQueueTime time.Duration
	// Timeout is how long the function may run.
	Timeout time.Duration
	// MayRepeat says that it may run twice: the function is idempotent, and the
	// whole request is here.
	MayRepeat bool
	// CancelOnDisconnect says that it is stopped when its client leaves.
	CancelOnDisconnect bool
}

// Invocation is the life of one invocation. Use New.
type Invocation struct {
	spec   Spec
	phase  Phase
	answer Answer
	ticket ticket

	// current is the last attempt, also once that has ended.
	current attempt

	untouched int // how many attempts ended before the function had seen anything of it
	released  int // how many of these were released by instances that should have run them
	// started says that it may have run without, or before, the present claim.
	started bool
	// lost is why the last attempt that may have run was broken off; empty if none was.
	lost string
}

// attempt is what an invocation knows of one attempt.
type attempt struct {
	number int // of the claim, from 1; 0 if there was none
	// claimed is when it began, and runBy when it must have ended.
	claimed, runBy time.Time
	begun          bool      // it has sent the head of an answer
	silentSince    time.Time // since when audits see that it has ended; zero if the last did not
}

// New is an invocation whose request is being read.
func New(spec Spec) *Invocation {
	return &Invocation{spec: spec, ticket: ticket{deadline: spec.Admitted.Add(spec.MaxQueueTime)}}
}

// Decision is what to do after an event.
type Decision struct {
	// Wait says that it waits for an instance from now on: it goes to the Pool of its revision.
	Wait bool
	// Offer says to send the ticket, and CancelTicket to cancel it.
	Offer, CancelTicket bool
	// Fail says to answer the client with a problem. Cut says to send no more of an answer that
	// has begun. Failure describes both.
	Fail, Cut bool
	Failure   Failure
	// Cancel says that its instance should stop, and GiveUp that it should release the invocation if
	// that still waits for a core.
	Cancel, GiveUp bool
	// End says that the invocation has Ended: later events about it are ignored.
	End bool
}

// Failure describes an invocation that Windlass answers itself, or whose answer is cut.
type Failure struct {
	Executed invocation.Executed
	// Cause is why an invocation failed.
	Cause Cause
	// Attempt is the attempt that ended it; 0 if it was not claimed.
	Attempt int
	// Lost is why an earlier attempt was broken off that may have run. Such an
	// invocation was queued again, and could not run again.
	Lost string
}

// Cause is why an invocation failed that no event failed by its own words.
type Cause uint8

// The causes.
const (
	CauseGiven    Cause = iota // the event says why
	CauseLate                  // no instance took it before its deadline
	CauseTimedOut              // the instance that has it did not end in time
	CauseDeleted               // its function was deleted while it waited
	CauseLost                  // it ended at the instance that has it, without an answer
)

// Queue lets an invocation wait whose request was read, under the token of its ticket.
func (v *Invocation) Queue(token invocation.Token, now time.Time) Decision {
	if v.phase != Admitted {
		return Decision{}
	}
	v.phase = Queued
	return v.ticket.renew(token, now)
}

// Ask sends the ticket of an invocation that waits, if it was not sent since the invocation
// waits.
func (v *Invocation) Ask(now time.Time) Decision {
	if v.phase != Queued || v.ticket.asked {
		return Decision{}
	}
	return v.ticket.offer(now)
}

// TicketSent records that its Ticket is on its way to a scheduler.
func (v *Invocation) TicketSent() { v.ticket.sent++ }

// NotQueued records that a scheduler could not take its ticket, or has admitted it and gives it back, so
// that it is overdue.
func (v *Invocation) NotQueued(admitted bool) {
	t := &v.ticket
	t.offered, t.sent, t.admitted = time.Time{}, max(0, t.sent-1), t.admitted || admitted
}

// Move lets it wait, if it waits, for another revision of its function under a new token:
// what an instance of the one before claims is refused. It keeps the time that it has left.
// The timeout is that of the other one.
func (v *Invocation) Move(token invocation.Token, timeout time.Duration, now time.Time) Decision {
	if v.phase != Queued {
		return Decision{}
	}
	v.spec.Timeout = timeout
	if late := v.QueueTimeout(now); late.End {
		return late
	}
	return v.ticket.renew(token, now)
}

// QueueTimeout fails it if it has waited until its deadline.
func (v *Invocation) QueueTimeout(now time.Time) Decision {
	if v.phase != Queued || now.Before(v.ticket.deadline) {
		return Decision{}
	}
	d := v.fail(CauseLate)
	d.CancelTicket = true
	return d
}

// Refuse fails it if it waits: a scheduler will not serve it.
func (v *Invocation) Refuse() Decision {
	if v.phase != Queued {
		return Decision{}
	}
	return v.fail(CauseGiven)
}

// ClientLeft records that the client has disconnected. A waiting invocation then never runs, for an
// instance or for a core. One that runs continues, unless the function asks for its cancellation.
func (v *Invocation) ClientLeft() Decision {
	if !v.answer.Final() {
		v.answer = AnswerAbandoned
	}
	switch v.phase {
	case Admitted:
		return v.end()
	case Queued:
		d := v.end()
		d.CancelTicket = true
		return d
	}
	claimed := v.phase == Claimed
	return Decision{
		Cancel: claimed && v.spec.CancelOnDisconnect,
		GiveUp: claimed && !v.spec.CancelOnDisconnect && !v.current.begun,
	}
}

// ClientLeftEarly is ClientLeft for a client that has left a part of its request's body unread. A
// claimed invocation that continues is still without an answer then: its function may read that part,
// which the handler passes on as long as it waits for an answer.
func (v *Invocation) ClientLeftEarly() Decision {
	if v.phase == Queued || v.phase == Claimed && v.spec.CancelOnDisconnect {
		return v.ClientLeft()
	}
	return Decision{}
}

// Abort answers the client because its request is invalid. An instance that has the call keeps
// it until it has ended, and has to stop if stop is set. An answer that is complete is not
// cut.
func (v *Invocation) Abort(stop bool) Decision {
	switch v.phase {
	case Ended:
		return Decision{}
	case Admitted, Queued:
		return v.fail(CauseGiven)
	}
	d := v.answer.problem(v.failure(CauseGiven))
	d.Cancel = stop
	return d
}

// Wrote records that no more is written to the client; whole says that it has the whole
// answer. Otherwise the answer is cut.
func (v *Invocation) Wrote(whole bool) Decision {
	if whole && v.answer == AnswerBegun {
		v.answer = AnswerComplete
	}
	if v.answer != AnswerBegun {
		return Decision{}
	}
	return v.answer.problem(v.failure(CauseGiven))
}

// failure is the Failure of an invocation that is answered with a problem now.
func (v *Invocation) failure(why Cause) Failure {
	f := Failure{Executed: invocation.ExecutedMaybe, Cause: why, Lost: v.lost}
	switch {
	case v.phase == Claimed:
		f.Attempt, f.Lost = v.current.number, ""
	case v.phase != Ended && !v.started:
		f.Executed = invocation.ExecutedNo
	}
	return f
}

// fail ends it with a problem as answer.
func (v *Invocation) fail(why Cause) Decision {
	d := v.answer.problem(v.failure(why))
	v.phase, d.End = Ended, true
	return d
}

// problem answers the client with a problem, or cuts the answer that has begun.
func (a *Answer) problem(f Failure) Decision {
	switch *a {
	case AnswerNone:
		*a = AnswerComplete
		return Decision{Fail: true, Failure: f}
	case AnswerBegun:
		*a = AnswerCut
		return Decision{Cut: true, Failure: f}
	}
	return Decision{}
}

func (v *Invocation) end() Decision {
	v.phase = Ended
	return Decision{End: true}
}

// Spec is what it was admitted with. Its timeout is that of the revision that it waits for last.
func (v *Invocation) Spec() Spec { return v.spec }

// Phase is where it is.
func (v *Invocation) Phase() Phase { return v.phase }

// Answer is what its client has.
func (v *Invocation) Answer() Answer { return v.answer }

// ticket is the state of an invocation's tickets.
type ticket struct {
	token    invocation.Token
	earlier  []invocation.Token // those that it had before, at most maxEarlierTokens
	deadline time.Time          // when the invocation stops waiting
	since    time.Time          // since when it has the token
	asked    bool               // it was offered since then
	offered  time.Time          // when it was offered last; zero if no queue has it
	sent     int                // how many tickets may be in queues, or were handed out
	admitted bool               // a scheduler had admitted one, and gave it back
}

// maxEarlierTokens bounds the tokens that an invocation remembers. A ticket that is older counts as forged.
const maxEarlierTokens = 16

// renew lets an invocation wait under a new token: claims with the earlier one are refused.
func (t *ticket) renew(token invocation.Token, now time.Time) Decision {
	if t.token != (invocation.Token{}) {
		t.earlier = append(t.earlier[max(0, len(t.earlier)+1-maxEarlierTokens):], t.token)
	}
	t.token, t.asked, t.since = token, false, now
	return Decision{Wait: true}
}

func (t *ticket) offer(now time.Time) Decision {
	t.offered, t.asked = now, true
	return Decision{Offer: true}
}

// due reports whether the ticket has to be sent, for the first time or again, or whether its
// deadline has come, which is a later one if the invocation was queued again.
func (t *ticket) due(now time.Time, moved bool) bool {
	switch {
	case now.After(t.deadline):
		return true
	case !t.asked: // its Pool decides, which AskAllAfter makes it do sooner
		return now.Sub(t.since) > ReofferAfter
	}
	return moved || now.Sub(t.offered) > ReofferAfter
}

// Ticket is what a ticket of an invocation says: how long it has waited and may still
// wait, the token, and the number that a claim by it would have. Again says that a
// queue may have had an earlier ticket, so that the invocation was admitted there.
type Ticket struct {
	Token             invocation.Token
	Waited, Remaining time.Duration
	Attempt           int
	Again             bool
}

// Ticket is that of an invocation that waits; false for any other.
func (v *Invocation) Ticket(now time.Time) (Ticket, bool) {
	t := &v.ticket
	return Ticket{
		Token: t.token, Waited: now.Sub(v.spec.Admitted), Remaining: t.deadline.Sub(now),
		Attempt: v.current.number + 1, Again: t.sent > 0 || t.admitted,
	}, v.phase == Queued
}
