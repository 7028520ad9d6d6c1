package scheduler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

func TestM3AStreamWhoseEndOrBeginningNobodyNotedIsNoted(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		a.pull(1, doneWith(1, 0))
		w.scheduler.shell.deps.Instances.Disconnect(a.key)
		w.expectCounts(fn, provisioner.Counts{Leaving: 1, Disconnected: 1})
		w.after(2 * core.ReconcileEvery)
		w.expectCounts(fn, provisioner.Counts{Created: 1})
		w.expectBroken("stream", 1)
		w.expectReconciled()

		a.cut()
		w.scheduler.shell.deps.Instances.Connect(a.key)
		w.after(2 * core.ReconcileEvery)
		w.expectCounts(fn, provisioner.Counts{Leaving: 1, Disconnected: 1})
		w.expectBroken("stream", 1)
		w.expectReconciled()
	})
}

func TestL1AFunctionThatRestsThoughCallsWaitIsWoken(t *testing.T) {
	config := defaults()
	config.node = 50 // no room, so that the call waits
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		// As if an event had been lost, twice.
		f := w.scheduler.shell.lookup(string(fn.UID))
		w.scheduler.shell.units.mu.Lock()
		delete(w.scheduler.shell.units.active, f)
		w.scheduler.shell.units.mu.Unlock()
		w.after(2*core.ReconcileEvery + w.scheduler.shell.config.Tick)
		g.expectRefused(5, 1) // for want of room, by a tick
		w.expectBroken("activity", 1)
	})
}

func slowStart(fn *v1alpha1.Function) { fn.Spec.Template.StartupTimeout.Duration = 10 * time.Minute }

func TestM6TicketsOfAGatewayThatIsGoneOrderNothingForLong(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, dead, lives := w.put("f", maxInstances(1), slowStart), w.gateway("g:1"), w.gateway("g:2")
		dead.offer(fn, 1, 2)
		lives.offer(fn, 3)
		w.after(2 * core.ReconcileEvery)
		w.expectReconciled()
		dead.hangUp()
		synctest.Wait()
		w.after(3 * core.ReconcileEvery)
		if waiting := w.waiting(fn); waiting != 1 {
			t.Errorf("%d calls wait, want that of the gateway that lives", waiting)
		}
		w.expectBroken("ticket", 2)
	})
}
