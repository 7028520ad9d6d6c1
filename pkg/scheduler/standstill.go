package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// overlook forgets instances that were lost while orders are held: most of them come
// back. Calls that wait for those that do not are seen when the hold ends.
func (s *ticker) overlook(active []*function) {
	for _, f := range active {
		s.step(f, core.Paused{})
	}
}

// noteTurn notes that Run turns. It comes before anything that may order.
func (s *ticker) noteTurn(now time.Time) {
	if stood := s.stood.Ran(now); stood > 0 {
		s.deps.Log.Warn("the scheduler stood still, and orders nothing until it knows what became of its instances",
			"stood", stood, "hold", core.PauseHold)
	}
}
