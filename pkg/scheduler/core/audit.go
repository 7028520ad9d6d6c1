package core

import (
	"maps"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// Audits compare the function's state with the level below it. A difference is repaired if two
// successive audits find it, and Repaired reports it; the cause of a difference that only one
// audit finds may still be on its way.
type (
	// ActivityAudited says whether the next tick looks at the function.
	ActivityAudited struct{ Awake bool }
	// GatewaysAudited says which gateways have a stream to this scheduler.
	GatewaysAudited struct{ Connected func(gateway string) bool }
)

// auditFindings are the differences that the last audits found.
type auditFindings struct {
	// asleep says that ticks pass over a function that needs one.
	asleep bool
	// silent are the gateways of waiting tickets and of reports that have no stream here; nil
	// if there are none.
	silent map[string]bool
}

func (e ActivityAudited) apply(f *Function, _ time.Time) {
	before := f.audits.asleep
	f.audits.asleep = !e.Awake && f.served() && (f.Waiting() > 0 || len(f.lost) > 0)
	if before && f.audits.asleep {
		f.activity.parked = true // wake acts only on a parked function
		f.wake()
		f.do(Repaired{N: 1})
	}
}

// The tickets of a lost gateway would cause launches until their deadlines, for calls whose
// clients are gone. A gateway that only lost its stream offers its tickets again.
func (e GatewaysAudited) apply(f *Function, now time.Time) {
	var silent map[string]bool
	isGone := func(gateway string) bool {
		if e.Connected(gateway) {
			return false
		}
		if silent == nil {
			silent = make(map[string]bool)
		}
		silent[gateway] = true
		return f.audits.silent[gateway]
	}
	var gone []invocation.ID
	f.queue.EachWaiting(func(t invocation.Ticket) {
		if isGone(t.Gateway) {
			gone = append(gone, t.ID)
		}
	})
	for _, id := range gone {
		f.queue.Cancel(id)
	}
	repaired := len(gone)
	for _, gateway := range slices.Sorted(maps.Keys(f.reports.last)) {
		if isGone(gateway) {
			f.reports.drop(gateway)
			repaired++
		}
	}
	f.audits.silent = silent
	f.updateIdleSince(now)
	if repaired += f.auditLoans(now); repaired > 0 {
		f.do(Repaired{N: repaired})
	}
}

// auditLoans takes loans back that their gateways do not know, because those places would
// stay unused. Both must have stayed the same between two audits.
func (f *Function) auditLoans(now time.Time) (repaired int) {
	for _, gateway := range slices.Sorted(maps.Keys(f.reports.last)) {
		g, lent := f.reports.last[gateway], f.queue.LentTo(gateway)
		if lent <= g.Lent {
			g.doubted = nil
			continue
		}
		found := loanDoubt{lent: lent, report: g.LoanReport}
		if g.doubted == nil || *g.doubted != found {
			g.doubted = &found
			continue
		}
		// Not f.recall: these loans are not among those that the gateway reports as idle.
		f.queue.RecallFrom(gateway, lent-g.Lent, now, func(r queue.Recall) { f.do(Recall(r)) })
		g.doubted = nil
		repaired += lent - g.Lent
	}
	return repaired
}
