package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Audits compare what is believed of the function with what is so one level below. What
// two successive ones find is mended, and Mended says so: what one finds may just be on
// its way.
type (
	// ActivityAudited says whether the next tick looks at the function.
	ActivityAudited struct{ Awake bool }
	// GatewaysAudited tells whether a gateway has a stream here.
	GatewaysAudited struct{ Connected func(gateway string) bool }
)

// auditFindings are what the last audits found.
type auditFindings struct {
	// asleep says that ticks pass over a function that needs one.
	asleep bool
	// silent are gateways that could not be heard, and whose tickets wait; nil if there
	// are none.
	silent map[string]bool
}

func onActivityAudited(f *Function, e ActivityAudited) {
	before := f.audits.asleep
	f.audits.asleep = !e.Awake && f.served() && (f.queue.Waiting() > 0 || f.lost > 0)
	if before && f.audits.asleep {
		f.activity.parked = true // whatever is believed, so that it is woken
		f.wake()
		f.do(Repaired{N: 1})
	}
}

// A gateway that is gone wants none of its calls, but they would order instances until
// their deadlines. One that could only not be heard offers its tickets again.
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
