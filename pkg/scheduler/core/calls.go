package core

import (
	"errors"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
)

// NotOwner refuses calls of a function that this scheduler does not serve.
var NotOwner = invocation.Refusal{Reason: invocation.RefusedNotOwner, Detail: becauseUnserved}

// match is the one place where tickets meet pulls.
func (f *Function) match(now time.Time) {
	f.queue.Match(now, func(cid invocation.CID, t *invocation.Ticket) {
		f.handOuts = append(f.handOuts, HandOut{CID: cid, Ticket: *t})
		f.do(&f.handOuts[len(f.handOuts)-1])
	})
	f.updateIdleSince(now)
}

// updateIdleSince records when the last ticket was done. It must follow every step that may
// remove one.
func (f *Function) updateIdleSince(now time.Time) {
	switch {
	case f.queue.Waiting()+f.queue.Out() > 0:
		f.idleSince = time.Time{}
	case f.idleSince.IsZero() && f.queue.Arrived() > 0:
		f.idleSince = now
	}
}

func onOffered(f *Function, e *Offered, now time.Time) {
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
	if f.queue.Waiting() > 0 && !f.lastDecision.blocked {
		f.do(RunNow{Always: f.runsOnCall(now)})
	}
}

// admit puts a ticket into the queue, or returns the refusal. A ticket that the queue knows
// was admitted before. A gateway sends an arrival time in the past only if it offers the
// ticket again.
func (f *Function) admit(e *Offered, now time.Time) *invocation.Refusal {
	switch {
	case !f.served():
		return &NotOwner
	case e.StartBlocked != nil:
		return e.StartBlocked
	}
	var idle time.Duration
	backlog := f.Backlog()
	if t := &e.Ticket; !f.queue.Contains(t.ID) {
		if !f.idleSince.IsZero() {
			idle = now.Sub(f.idleSince)
		}
		refusal := f.limiter.Admit(admission.Call{
			Now: now, Term: f.term, Reoffered: t.Arrived.Before(now), Remaining: t.Deadline.Sub(now),
			Waiting: f.queue.Waiting(), Out: f.queue.Out(), Jitter: e.Jitter,
		}, f.spec.Calls, backlog)
		if refusal != nil {
			return refusal
		}
	}
	if err := f.queue.Offer(e.Ticket, now); errors.Is(err, queue.ErrFull) {
		return &invocation.Refusal{
			Reason:     invocation.RefusedQueueFull,
			Detail:     "too many calls of this function wait already; call it less often, or let it scale further (spec.scaling.maxInstances)",
			RetryAfter: admission.RetryAfter(backlog.Wait(f.config.MaxQueued), e.Jitter),
		}
	}
	if idle > 0 {
		f.floorPolicy.CalledAfter(idle)
	}
	return nil
}

// Backlog estimates how fast the instances that the last decision saw work off the queue.
func (f *Function) Backlog() admission.BacklogEstimate {
	backlog := f.lastDecision.backlog
	backlog.Mean = f.estimates.executions.Mean()
	return backlog
}

func onCallCancelled(f *Function, e *CallCancelled, now time.Time) {
	f.queue.Cancel(e.ID)
	f.updateIdleSince(now)
}

func onNoRoomFound(f *Function, e NoRoomFound, now time.Time) { f.refuseWaiting(e.Refusal, now) }
