package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
)

// NotOwner refuses calls of a function that this scheduler does not serve.
var NotOwner = invocation.Refusal{Reason: invocation.RefusedNotOwner, Detail: becauseUnserved}

// match is the one place where tickets meet pulls. For tickets that meet none, it takes loans
// back.
func (f *Function) match(now time.Time) {
	f.queue.Match(now, f.spec.lends(), f.handOut)
	f.recallLoans(now)
	f.updateIdleSince(now)
}

// handOut hands a ticket to an instance.
func (f *Function) handOut(cid invocation.CID, t *invocation.Ticket, lent bool) {
	f.doHandOut(HandOut{CID: cid, Ticket: *t, Lent: lent})
}

// handOutAgain hands a ticket to an instance that another one may claim, too.
func (f *Function) handOutAgain(cid invocation.CID, t *invocation.Ticket, lent bool) {
	f.doHandOut(HandOut{CID: cid, Ticket: *t, Lent: lent, Rebound: true})
}

func (f *Function) doHandOut(h HandOut) {
	f.handOuts = append(f.handOuts, h)
	f.do(&f.handOuts[len(f.handOuts)-1])
}

// arrived is how many calls have come, here and to gateways that ran them by loans.
func (f *Function) arrived() uint64 { return f.queue.Arrived() + f.reports.served }

// updateIdleSince records when the last call was done. It must follow every step that may
// remove one.
func (f *Function) updateIdleSince(now time.Time) {
	switch {
	case f.hasCalls():
		f.idleSince = time.Time{}
	case f.idleSince.IsZero() && f.arrived() > f.before:
		f.idleSince = now
	}
}

func (e *Offered) apply(f *Function, now time.Time) {
	if refusal := f.admit(e, now); refusal != nil {
		f.do(OfferRefused{Why: refusal})
		return
	}
	f.match(now)
	f.wake()
	f.requestRun(now)
}

// requestRun asks for a decision before the next tick if calls wait for one.
func (f *Function) requestRun(now time.Time) {
	if f.Waiting() > 0 && !f.last.blocked {
		f.do(RunNow{Always: f.last.runsOnCall(now)})
	}
}

// admit puts a ticket into the queue, or returns the refusal. A ticket that the queue knows
// was admitted before.
func (f *Function) admit(e *Offered, now time.Time) *invocation.Refusal {
	known := f.queue.Contains(e.Ticket.ID)
	switch {
	case !f.served():
		return &NotOwner
	case e.StartBlocked != nil && !known: // a ticket that waits is refused if the next start fails
		return e.StartBlocked
	}
	if !known {
		if refusal := f.limit(e, now); refusal != nil {
			return refusal
		}
	}
	_ = f.queue.Offer(e.Ticket, now) // it is not full, see limit
	if !known {
		f.reports.asked(e.Ticket.Gateway, e.Ticket.Arrived)
		f.endIdleTime(now)
	}
	return nil
}

// limit refuses a call if too many wait, or by the function's limits. The limit of the rate comes last: a call
// that is refused does not count against it.
func (f *Function) limit(e *Offered, now time.Time) *invocation.Refusal {
	backlog := f.backlog()
	if f.queue.Full() {
		return &invocation.Refusal{
			Reason:     invocation.RefusedQueueFull,
			Detail:     "too many calls of this function wait already; call it less often, or let it scale further (spec.scaling.maxInstances)",
			RetryAfter: admission.RetryAfter(backlog.Wait(f.config.MaxQueued), e.Jitter),
		}
	}
	// Those that no ticket here accounts for run too: an earlier scheduler handed them out, or the agent's stream broke.
	view := f.queue.View(now)
	return f.limiter.Admit(admission.Call{
		Now: now, Term: f.term, Reoffered: e.Again, Remaining: e.Ticket.Deadline.Sub(now),
		Waiting: view.Waiting, Out: view.Out + max(0, view.Untracked), Jitter: e.Jitter,
	}, f.spec.Calls, backlog)
}

// backlog estimates how fast the instances that the last decision saw work off the queue.
func (f *Function) backlog() admission.BacklogEstimate {
	backlog := f.last.backlog
	backlog.Mean = f.estimates.executions.Mean()
	return backlog
}

func (e *CallCancelled) apply(f *Function, now time.Time) {
	f.queue.Cancel(e.ID)
	f.updateIdleSince(now)
}

func (e NoRoomFound) apply(f *Function, now time.Time) { f.refuseWaiting(e.Refusal, now) }
