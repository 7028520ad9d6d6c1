package scheduler

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/broker"
	"github.com/windlass-dev/windlass/pkg/queue/intake"
)

// longestWait bounds what is believed of how long a call has waited and may still
// wait, so that times stay within what can be computed with.
const longestWait = 48 * time.Hour

// ticket reads a ticket from the wire.
func ticketOf(o *offerStream, id invoke.ID, wire *wirev1.Ticket, now time.Time) invoke.Ticket {
	return invoke.Ticket{
		ID:       id,
		Token:    invoke.TokenFromBytes(wire.GetToken()),
		Gateway:  o.gateway,
		Arrived:  now.Add(-believable(wire.GetWaitedNs())),
		Deadline: now.Add(believable(wire.GetRemainingNs())),
	}
}

func believable(ns int64) time.Duration { return min(max(0, time.Duration(ns)), longestWait) }

// takeIn puts a ticket into its function's queue, or says why not. It tells whether
// tickets wait then. Gateways say of a ticket that it has waited only when they offer
// it again.
func (s *Scheduler) takeIn(f *function, term invoke.Term, t invoke.Ticket, now time.Time) (waiting bool, refusal *invoke.Refusal) {
	outlook := f.outlook()
	limits := callLimits(f.current())
	var quiet time.Duration
	waiting, err := f.broker.Offer(t, func(a broker.Arrival) bool {
		quiet = a.Quiet
		refusal = f.intake.Admit(intake.Call{
			Now: now, Term: term, Again: t.Arrived.Before(now), Remaining: t.Deadline.Sub(now),
			Waiting: a.Waiting, Out: a.Out, Chance: rand.Float64(),
		}, limits, outlook)
		return refusal == nil
	})
	switch {
	case err == nil:
		f.calledAfter(quiet)
		return waiting, nil
	case errors.Is(err, broker.ErrClosed):
		return false, &invoke.Refusal{Reason: invoke.RefusedNotOwner, Detail: err.Error()}
	case errors.Is(err, queue.ErrFull):
		refusal = &invoke.Refusal{
			Reason:     invoke.RefusedQueueFull,
			Detail:     "too many calls of this function wait already; call it less often, or let it scale further (spec.scaling.max)",
			RetryAfter: intake.RetryAfter(outlook.Wait(s.config.MaxQueued), rand.Float64()),
		}
	}
	f.countRefused(refusal.Reason, 1)
	return false, refusal
}

// callLimits are the bounds on calls.
func callLimits(fn *v1alpha1.Function) intake.Limits {
	l := fn.Spec.Limits
	return intake.Limits{Concurrency: int(l.Concurrency), Rate: float64(l.RatePerSecond), Burst: int(l.Burst)}
}

// outlook is how fast the queue is worked off, by the instances that the last tick
// saw.
func (f *function) outlook() intake.Outlook {
	seen := f.foreseen.Load()
	if seen == nil {
		return intake.Outlook{}
	}
	outlook := *seen
	outlook.Mean = f.means().Execution
	return outlook
}

// foresee keeps for those who offer tickets what a tick has seen. A function cannot
// grow if it has its most instances, or if the orders of this tick found no room.
func (f *function) foresee(c *considered) {
	instances := c.counts.Created + c.counts.Creating + len(c.ordered.Keys) - len(c.withdrawn)
	most := limits(c.fn, c.upkeep).Max
	f.foreseen.Store(&intake.Outlook{
		Parallel: instances * int(c.fn.Spec.Concurrency),
		Stuck:    c.ordered.NoRoom != "" || most > 0 && instances >= most,
	})
}
