package scheduler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

func TestARevisionThatIsNotInUseDrainsItsInstances(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		g.offer(fn, 1)
		a.expect("ticket 0001 at g:1")
		w.after(w.scheduler.shell.config.ClaimGrace)

		fn = w.put("f", minInstances(1), revision(2))
		a.expect("retire: " + reasonUnused)
		w.ticks(1)
		b := w.ready(w.started(fn, 1)[0])
		// It runs its call to the end, and its connection is not needed.
		a.goodbye(agentwire.Goodbye_REASON_DONE, "retired")
		g.offer(fn, 2)
		b.expect("ticket 0002 at g:1")
		a.closeSend()
		a.expect()
		w.ticks(3)
		w.started(fn, 0)
		w.expectCounts(fn, provisioner.Counts{Created: 1})
	})
}

func TestCallsOfDrainingInstancesLaunchNoOthers(t *testing.T) {
	for name, goodbye := range map[string]bool{"that say goodbye": true, "that are lost": false} {
		t.Run(name, func(t *testing.T) { retireWithManyCalls(t, goodbye) })
	}
}

func retireWithManyCalls(t *testing.T, goodbye bool) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", concurrency(50)), w.gateway("g:1")
		for n := range 50 {
			g.offer(fn, n)
		}
		a := w.ready(w.started(fn, 1)[0])
		a.heard()
		w.after(w.scheduler.shell.config.ClaimGrace)
		fn = w.put("f", concurrency(50), revision(2))
		if goodbye {
			a.goodbye(agentwire.Goodbye_REASON_DONE, "retired")
			w.ticks(3)
			w.started(fn, 0)
		}
		a.cut()
		w.ticks(3)
		w.started(fn, 0)
	})
}

func TestInstanceThatDoesNotGoIsStoppedWhenItsCallsMustHaveEnded(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		a.expect("ticket 0001 at g:1")
		w.put("f", revision(2), func(fn *v1alpha1.Function) { fn.Spec.Template.Timeout.Duration = time.Second })
		w.after(time.Minute)
		w.expectCounts(fn, provisioner.Counts{Leaving: 1})
		w.after(leaveGrace + time.Second)
		w.expectCounts(fn, provisioner.Counts{})
	})
}

func TestDeletedFunctionLeavesNothingBehind(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a, f := w.ready(specs[0]), w.scheduler.shell.lookup(string(fn.UID))
		g.offer(fn, 1, 2)
		a.expect("ticket 0001 at g:1")

		w.catalog.Remove(fn.Key())
		g.expectRefused(controlwire.Refusal_REASON_UNKNOWN_FUNCTION, 2)
		a.expect("retire: " + reasonDeleted)
		w.expectCounts(fn, provisioner.Counts{Leaving: 1})
		g.offer(fn, 3)
		g.expectRefused(controlwire.Refusal_REASON_UNKNOWN_FUNCTION, 3)
		w.hello(specs[1]).expectEnded(codes.NotFound)

		a.pull(1, doneWith(1, time.Millisecond))
		a.goodbye(agentwire.Goodbye_REASON_DONE, "retired")
		a.closeSend()
		w.expectCounts(fn, provisioner.Counts{})
		w.ticks(3)
		w.started(fn, 0)
		if len(w.scheduler.shell.all())+len(w.scheduler.shell.units.active) != 0 {
			t.Error("the function is still known")
		}
		w.scheduler.shell.step(f, core.InstanceEnded{}) // a stream that was slow
		if families := w.scrape("function"); len(families) != 0 {
			t.Errorf("series are left: %v", families)
		}
	})
}

func TestFunctionThatIsTriggeredAndDeletedGetsNoInstance(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.ownership.own(false) // so that it gets no instance before
		fn := w.put("f", minInstances(1))
		f := w.scheduler.shell.lookup(string(fn.UID))
		w.catalog.Remove(fn.Key())
		synctest.Wait()
		w.ownership.own(true)
		w.scheduler.shell.triggers <- f
		w.ticks(2)
		w.started(fn, 0)
	})
}

func TestFunctionThatGaveWayToAnotherOfItsName(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.started(fn, 1)
		other := w.put("f", func(fn *v1alpha1.Function) { fn.UID = "another" })
		g.expectRefused(controlwire.Refusal_REASON_UNKNOWN_FUNCTION, 1)
		g.offer(other, 2)
		w.ready(w.started(other, 1)[0]).expect("ticket 0002 at g:1")
	})
}

func TestTheEndOfALocalSchedulerDrainsAndRefuses(t *testing.T) {
	config := defaults()
	config.local = true
	inHarness(t, config, func(w *harness) {
		fn, other, g := w.put("f"), w.put("other"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		a.expect("ticket 0001 at g:1")
		g.offer(other, 2)
		late := w.started(other, 1)[0]

		w.stop()
		a.expect("retire: the scheduler is shutting down")
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 2)
		g.offer(fn, 3)
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 3)
		w.hello(late).expectEnded(codes.NotFound)
		a.pull(1, doneWith(1, time.Millisecond))
		a.goodbye(agentwire.Goodbye_REASON_DONE, "")
		a.closeSend()
		a.expectEnded(codes.OK)
	})
}

// Instances outlive a scheduler that has others beside it, also if it ends before another owner is known.
func TestAtTheEndOfASchedulerInstancesGoToTheNextOwner(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		a := w.ready(spec)
		g.offer(fn, 1, 2)
		a.expect("ticket 0001 at g:1")

		w.stop()
		a.expect("moved to ")
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 1, 2)
		g.offer(fn, 3)
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 3)
		b := w.hello(spec)
		b.expect("moved to ")
		b.expectEnded(codes.OK)
		if len(w.runtime.stopped) != 0 {
			t.Errorf("stopped %v", w.runtime.stopped)
		}
	})
}

// brokenCatalog can be watched no longer.
type brokenCatalog struct{ catalog.Reader }

func (brokenCatalog) Watch(context.Context, func(catalog.Event)) error {
	return errors.New("the disk is gone")
}

func TestRunEndsWhenTheCatalogCannotBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, defaults())
		w.scheduler.shell.deps.Catalog = brokenCatalog{}
		if err := w.scheduler.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	_, err := New(Config{NoRoomPatience: -1}, Deps{})
	if err == nil {
		t.Fatal("an empty Config is taken")
	}
	for _, field := range []string{"Tick", "MaxQueued", "ClaimGrace", "Executions", "NoRoomPatience", "EvictAfter"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%q does not name %s", err, field)
		}
	}
}
