package scheduler

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// rests reports whether a function has no unit.
func (u *unit) rests() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.unitSpec == nil
}

func (w *harness) expectRests(fn *v1alpha1.Function, want bool) {
	w.t.Helper()
	f := w.scheduler.shell.lookup(uidOf(fn))
	if got := f.rests(); got != want {
		w.t.Errorf("%s rests: %t, want %t", fn.Name, got, want)
	}
	f.mu.Lock()
	if want && f.streams != nil {
		w.t.Errorf("%s keeps a map for streams", fn.Name)
	}
	f.mu.Unlock()
	runtime.GC()
	if got := f.fn(); !equality.Semantic.DeepEqual(got, fn) {
		w.t.Errorf("%s is %v", fn.Name, got)
	}
	if got := f.readOutline(); got != outlineOf(fn) {
		w.t.Errorf("%s is said to be %+v", fn.Name, got)
	}
}

func TestAFunctionRestsUnlessItHasInstances(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f")
		w.ticks(2)
		w.expectRests(fn, true)

		fn = w.put("f", minInstances(1))
		w.ticks(2)
		a := w.ready(w.started(fn, 1)[0])
		w.ticks(2)
		w.expectRests(fn, false)
		w.after(2 * core.ReconcileEvery)
		w.expectRests(fn, false)

		fn = w.put("f")
		w.ticks(2)
		a.askToLeave(time.Hour)
		a.expect("leave: true, ask again in 100ms")
		w.expectRests(fn, false) // its stream is open yet
		a.closeSend()
		w.after(2 * core.ReconcileEvery)
		w.expectCounts(fn, provisioner.Counts{})
		w.expectRests(fn, true)
	})
}

// Agents speak once more after the slot has gone, with no stream that the function knows.
func TestAFunctionWhoseAgentSpeaksDoesNotRest(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		w.ownership.lose("other:1")
		w.after(2 * core.ReconcileEvery)
		w.expectRests(fn, false)
		a.pull(1, doneWith(1, time.Second))
		a.closeSend()
		w.after(2 * core.ReconcileEvery)
		w.expectRests(fn, true)
	})
}

// The agent may have come, and have been sent to another scheduler, while an audit looked at streams.
func TestAFunctionThatRestsHearsOfTheLastCallOfAnAgent(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		w.ownership.lose("other:1")
		w.after(core.AuditEvery)
		w.scheduler.shell.lookup(uidOf(fn)).forgetStreams()
		w.expectRests(fn, true)
		a.pull(1, doneWith(1, time.Second))
		synctest.Wait()
	})
}

// A change of one unit wakes no other, and lets the entry before go.
func TestAUnitThatDidNotChangeRestsOn(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		old, fresh := newTestFunction("f", revision(1)), newTestFunction("f", revision(2))
		w.putUnits(old, fresh)
		w.ticks(2)
		f := w.scheduler.shell.lookup(uidOf(old))
		before := f.packed
		changed := newTestFunction("f", revision(2), maxInstances(3))
		w.putUnits(newTestFunction("f", revision(1)), changed)
		if w.scheduler.shell.units.isActive(f) {
			t.Error("a unit is woken though it is as it was")
		}
		if f.packed == before {
			t.Error("a unit keeps the entry before")
		}
		w.expectRests(old, true)
		w.ticks(2)
		w.expectRests(changed, true)
	})
}

func TestAFunctionThatMayUseSparesDoesNotRest(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
		w.after(2 * core.ReconcileEvery)
		w.expectRests(f, false)
	})
}
