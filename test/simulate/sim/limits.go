package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// limits looks at which calls are let in, and whether those that are not are refused for
// what is so.
type limits struct {
	served *served
	// admitted are the times at which new calls came in lately, in one term.
	admitted []time.Time
	term     invocation.Term
	calls    admission.Limits
}

// happened looks at what became of a ticket, before the rules of tickets hear of it.
func (l *limits) happened(e core.Event, effects []core.Effect) {
	if failed, is := e.(core.StartFailed); is {
		_, refused := core.AnswerOf[core.Refuse](effects)
		if refused && (failed.Blameless || failed.OthersExist) {
			l.served.scheduler.world.violate(RuleRefusedForAReason, 0)
		}
	}
	o, is := e.(*core.Offered)
	if !is {
		return
	}
	f, now := l.served, l.served.scheduler.now()
	in, calls := f.scheduler.world.truth.byID[o.Ticket.ID], f.core.Spec().Calls
	present := len(f.tickets.kept)
	_, known := f.tickets.kept[o.Ticket.ID]
	// Calls that run without a ticket at this scheduler count, too.
	full := calls.Concurrency > 0 && present+max(0, f.core.View(now).Untracked) >= calls.Concurrency
	if refused, is := core.AnswerOf[core.OfferRefused](effects); is {
		f.scheduler.note("refuses a call: "+string(refused.Why.Reason), uint64(f.fn.index), uint64(present))
		wrong := known
		switch refused.Why.Reason {
		case invocation.RefusedConcurrency:
			wrong = wrong || !full
		case invocation.RefusedRate:
			wrong = wrong || calls.Rate == 0
		case invocation.RefusedQueueFull:
			wrong = f.core.Tickets() < maxQueued
		case "":
			wrong = true
		}
		if wrong {
			f.scheduler.world.truth.broken(in, RuleRefusedForAReason)
		}
		return
	}
	if in != nil {
		in.letIn = true
	}
	if known || o.Again {
		return // it was let in before
	}
	if full || l.tooFast(now) {
		f.scheduler.world.truth.broken(in, RuleWithinLimits)
	}
}

// tooFast notes that a call was let in, and tells whether there were too many lately.
func (l *limits) tooFast(now time.Time) bool {
	calls, term := l.served.core.Spec().Calls, l.served.core.Term()
	if term != l.term || calls != l.calls {
		l.term, l.calls, l.admitted = term, calls, nil
	}
	l.admitted = slices.DeleteFunc(append(l.admitted, now), func(at time.Time) bool { return now.Sub(at) >= time.Second })
	return calls.Rate > 0 && len(l.admitted) > int(calls.Rate)+calls.Burst
}
