package scheduler

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// standStill makes the scheduler stand still for 15 s, while the agents lose their
// connections.
func (w *harness) standStill(agents ...*agent) {
	resume := w.ownership.stall()
	w.after(15 * time.Second)
	for _, a := range agents {
		a.cut()
	}
	resume()
}

func TestAnOwnerThatWasPausedReplacesOnlyInstancesThatDoNotComeBack(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		g.offer(fn, 1, 2) // both are needed
		w.ticks(1)
		w.standStill(a, b)
		w.after(core.PauseHold / 2)
		w.started(fn, 0)
		w.ready(specs[0])
		w.after(core.PauseHold / 3)
		w.started(fn, 0)
		w.after(core.PauseHold)
		w.started(fn, 1)
		w.expectLog("the process was paused", "paused=15s")
	})
}

func TestAnOwnerThatWasReplacedDuringAPauseLaunchesNothing(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		w.standStill(a, b)
		w.after(core.PauseHold / 2) // so late it hears of it
		w.ownership.lose("other:1")
		w.after(2 * core.PauseHold)
		w.started(fn, 0)
	})
}

func TestCallsThatCameWhileOrdersAreHeldAreServedAfterwards(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		w.ticks(1)
		w.standStill()
		w.ticks(1)
		g.offer(fn, 1)
		w.ticks(1)
		w.started(fn, 0)
		w.after(core.PauseHold)
		w.ready(w.started(fn, 1)[0]).expect("ticket 0001 at g:1")
	})
}
