package core

import (
	"errors"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
)

// NotOwner refuses calls of a function that is not served here.
var NotOwner = invocation.Refusal{Reason: invocation.RefusedNotOwner, Detail: becauseUnserved}

// match is where tickets meet pulls.
func (f *Function) match(now time.Time) {
	f.queue.Match(now, func(cid invocation.CID, t *invocation.Ticket) {
		f.handOuts = append(f.handOuts, HandOut{CID: cid, Ticket: *t})
		f.do(&f.handOuts[len(f.handOuts)-1])
	})
	f.noteQuiet(now)
}

// noteQuiet notes when no ticket was left. It follows everything that may have taken
// the last one away.
func (f *Function) noteQuiet(now time.Time) {
	switch {
	case f.queue.Waiting()+f.queue.Out() > 0:
		f.quietSince = time.Time{}
	case f.quietSince.IsZero() && f.queue.Arrived() > 0:
		f.quietSince = now
	}
}

func (e *Offered) happen(f *Function, now time.Time) {
	if refusal := f.takeIn(e, now); refusal != nil {
		f.do(OfferRefused{Why: refusal})
		return
	}
	f.match(now)
	f.wake()
	f.hurry(now)
}

// hurry asks for a decision if calls wait for one.
func (f *Function) hurry(now time.Time) {
	if f.queue.Waiting() > 0 && !f.lastDecision.blocked {
		f.do(Hurry{Eager: f.eager(now)})
	}
}

// takeIn puts a ticket into the queue, or says why not. A ticket that the queue knows
// was let in before, and gateways say of a ticket that it has waited only when they offer
// it again.
func (f *Function) takeIn(e *Offered, now time.Time) *invocation.Refusal {
	switch {
	case !f.served():
		return &NotOwner
	case e.Barred != nil:
		return e.Barred
	}
	var quiet time.Duration
	outlook := f.Outlook()
	if t := &e.Ticket; !f.queue.Contains(t.ID) {
		if !f.quietSince.IsZero() {
			quiet = now.Sub(f.quietSince)
		}
		refusal := f.intake.Admit(admission.Call{
			Now: now, Term: f.term, Reoffered: t.Arrived.Before(now), Remaining: t.Deadline.Sub(now),
			Waiting: f.queue.Waiting(), Out: f.queue.Out(), Jitter: e.Chance,
		}, f.spec.Calls, outlook)
		if refusal != nil {
			return refusal
		}
	}
	if err := f.queue.Offer(e.Ticket, now); errors.Is(err, queue.ErrFull) {
		return &invocation.Refusal{
			Reason:     invocation.RefusedQueueFull,
			Detail:     "too many calls of this function wait already; call it less often, or let it scale further (spec.scaling.maxInstances)",
			RetryAfter: admission.RetryAfter(outlook.Wait(f.config.MaxQueued), e.Chance),
		}
	}
	if quiet > 0 {
		f.floorPolicy.CalledAfter(quiet)
	}
	return nil
}

// Outlook is how fast the queue is worked off, by the instances that the last decision
// saw.
func (f *Function) Outlook() admission.BacklogEstimate {
	outlook := f.lastDecision.outlook
	outlook.Mean = f.learnt.executions.Mean()
	return outlook
}

func (e *Withdrawn) happen(f *Function, now time.Time) {
	f.queue.Cancel(e.ID)
	f.noteQuiet(now)
}

func (e GivenUp) happen(f *Function, now time.Time) { f.refuse(e.Refusal, now) }
