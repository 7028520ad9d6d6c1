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
	GatewaysAudited struct{ Heard func(gateway string) bool }
)

// suspicions are what the last audits found.
type suspicions struct {
	// asleep says that ticks pass over a function that needs one.
	asleep bool
	// unheard are gateways that could not be heard, and whose tickets wait; nil if there
	// are none.
	unheard map[string]bool
}

func (e ActivityAudited) happen(f *Function, _ time.Time) {
	before := f.audit.asleep
	f.audit.asleep = !e.Awake && f.served() && (f.queue.Waiting() > 0 || f.lost > 0)
	if before && f.audit.asleep {
		f.rest.resting = true // whatever is believed, so that it is woken
		f.wake()
		f.do(Mended{N: 1})
	}
}

// A gateway that is gone wants none of its calls, but they would order instances until
// their deadlines. One that could only not be heard offers its tickets again.
func (e GatewaysAudited) happen(f *Function, now time.Time) {
	var unheard map[string]bool
	var gone []invocation.ID
	f.queue.EachWaiting(func(t invocation.Ticket) {
		if e.Heard(t.Gateway) {
			return
		}
		if unheard == nil {
			unheard = make(map[string]bool)
		}
		unheard[t.Gateway] = true
		if f.audit.unheard[t.Gateway] {
			gone = append(gone, t.ID)
		}
	})
	f.audit.unheard = unheard
	if len(gone) == 0 {
		return
	}
	for _, id := range gone {
		f.queue.Cancel(id)
	}
	f.noteQuiet(now)
	f.do(Mended{N: len(gone)})
}
