package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
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
	// silent are the gateways of waiting tickets that have no stream here; nil if there are
	// none.
	silent map[string]bool
}

func onActivityAudited(f *Function, e ActivityAudited) {
	before := f.audits.asleep
	f.audits.asleep = !e.Awake && f.served() && (f.queue.Waiting() > 0 || f.lost > 0)
	if before && f.audits.asleep {
		f.activity.parked = true // wake acts only on a parked function
		f.wake()
		f.do(Repaired{N: 1})
	}
}

// The tickets of a lost gateway would cause launches until their deadlines, for calls whose
// clients are gone. A gateway that only lost its stream offers its tickets again.
func onGatewaysAudited(f *Function, e GatewaysAudited, now time.Time) {
	var silent map[string]bool
	var gone []invocation.ID
	f.queue.EachWaiting(func(t invocation.Ticket) {
		if e.Connected(t.Gateway) {
			return
		}
		if silent == nil {
			silent = make(map[string]bool)
		}
		silent[t.Gateway] = true
		if f.audits.silent[t.Gateway] {
			gone = append(gone, t.ID)
		}
	})
	f.audits.silent = silent
	if len(gone) == 0 {
		return
	}
	for _, id := range gone {
		f.queue.Cancel(id)
	}
	f.updateIdleSince(now)
	f.do(Repaired{N: len(gone)})
}
