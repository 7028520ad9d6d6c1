package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

func window(start string, hours int, least int32) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		fn.Spec.Scaling.Windows = append(fn.Spec.Scaling.Windows, v1alpha1.ScalingWindow{
			Start: start, Duration: v1alpha1.Duration{Duration: time.Duration(hours) * time.Hour}, MinInstances: least,
		})
	}
}

// learning learns from idle times, and keeps nothing that they do not ask for.
func learning(fn *v1alpha1.Function) {
	fn.Spec.Scaling.ScaleDown.Policy = v1alpha1.ScaleDownLearned
	fn.Spec.Scaling.ScaleDown.LastInstanceIdleTimeout.Duration = time.Minute
}

func TestAWindowRaisesTheLeastWhileItIsOpen(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) { // which begins at midnight
		fn := w.put("f", window("0 8 * * *", 1, 2))
		w.after(8*time.Hour - time.Second)
		w.started(fn, 0)
		if w.scheduler.shell.units.isActive(w.scheduler.shell.lookup(string(fn.UID))) {
			t.Error("it is awake hours before")
		}
		w.after(time.Second + w.scheduler.shell.config.Tick)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		w.after(30 * time.Minute)
		b.askToLeave(30 * time.Minute)
		b.expect("leave: false, ask again in 10m10s")
		w.after(time.Hour)
		b.askToLeave(90 * time.Minute)
		b.expect("leave: true, ask again in 100ms")
		a.expect()
		w.started(fn, 0)
		w.after(22 * time.Hour)
		a.askToLeave(22 * time.Hour)
		a.expect("leave: true, ask again in 100ms")
		w.after(30 * time.Minute)
		w.started(fn, 2) // the next day
	})
}

// taught lets a function be called every half hour, until its idle times teach
// something: with the end of its last call.
func (w *harness) taught(fn *v1alpha1.Function, g *gateway) *agent {
	w.t.Helper()
	g.offer(fn, 0)
	a := w.ready(w.started(fn, 1)[0])
	for n := range 11 {
		if n > 0 {
			w.after(30 * time.Minute)
			g.offer(fn, n)
		}
		a.expect(fmt.Sprintf("ticket %04d at g:1", n))
		w.after(time.Second)
		a.pull(1, doneWith(n, time.Second))
	}
	w.started(fn, 0)
	return a
}

func TestAnInstanceLeavesAndComesAsTheIdleTimesTeach(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", learning), w.gateway("g:1")
		a := w.taught(fn, g)
		w.after(59 * time.Second)
		a.expect()
		w.after(2 * time.Second)
		a.expect("retire: no call is expected")
		a.obey()
		w.after(25*time.Minute + 50*time.Second)
		w.expectCounts(fn, provisioner.Counts{})
		w.after(10 * time.Second)
		ahead := w.ready(w.started(fn, 1)[0])
		w.after(2 * time.Minute)
		g.offer(fn, 100)
		ahead.expect("ticket 0100 at g:1") // and nothing was created for it
		w.started(fn, 0)

		// A call that does not come is not awaited for ever.
		ahead.pull(1, doneWith(100, time.Second))
		w.after(time.Minute + time.Second)
		ahead.expect("retire: no call is expected")
		ahead.obey()
		w.after(25*time.Minute + 10*time.Second) // one of the idle times was shorter
		awaiting := w.ready(w.started(fn, 1)[0])
		w.after(10 * time.Minute)
		awaiting.expect("retire: no call is expected")
		awaiting.obey()
		w.after(3 * time.Hour)
		w.started(fn, 0)
		if got := w.scrape("function")["instances_released_total{f,ns}"]; got < 3 {
			t.Errorf("%v are counted as released", got)
		}
	})
}

func TestAnAwaitedCallsInstanceIsNotEvicted(t *testing.T) {
	config := defaults()
	config.node = 100
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f", learning), w.gateway("g:1")
		a := w.taught(fn, g)
		w.after(time.Minute + time.Second)
		a.obey()
		w.after(26 * time.Minute)
		ahead := w.ready(w.started(fn, 1)[0])
		w.after(time.Minute)
		g.offer(w.put("other"), 200)
		w.after(3 * time.Second)
		ahead.expect()
	})
}

func TestOthersAreNotReleasedForWantOfAPlan(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		a := w.taught(fn, g)
		w.after(25 * time.Minute)
		if heard := a.heard(); slices.Contains(heard, "retire: no call is expected") {
			t.Errorf("heard %q", heard)
		}
	})
}
