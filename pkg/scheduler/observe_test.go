package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

func decidedBy(name string) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) { fn.Annotations = map[string]string{wellknown.AnnotationAlgorithm: name} }
}

func (w *harness) snapshot(fn *v1alpha1.Function) autoscaler.Snapshot {
	f := w.scheduler.shell.lookup(string(fn.UID))
	w.scheduler.ticker.placer.planner.BeginTick(time.Now())
	d, _ := stepFor[*core.Decided](w.scheduler.shell, f, &core.Ticked{Observed: w.scheduler.ticker.observe(f, f.spec())})
	return d.Snapshot
}

func TestASnapshotSaysAllThatADeciderAsksFor(t *testing.T) {
	config := defaults()
	config.node = 1000
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f", concurrency(2), maxInstances(2)), w.gateway("g:1")
		g.offer(fn, 1)
		spec := w.started(fn, 1)[0]
		w.after(3 * time.Second)
		a := w.ready(spec)
		a.pull(1, doneWith(1, 40*time.Millisecond))
		g.offer(fn, 2, 3)
		w.ticks(1)
		g.offer(fn, 4, 5)
		w.ticks(2)
		g.offer(fn, 6)
		w.after(20 * time.Millisecond)
		got := w.snapshot(fn)
		want := autoscaler.Snapshot{
			Arrived: 6, Departed: 3, Stale: 2, OldestWait: 220 * time.Millisecond,
			Created: 1, Busy: 1, Creating: 1, Room: 8, Concurrency: 2,
			MeanExecution: 40 * time.Millisecond, MeanStart: 3 * time.Second,
			Elapsed: 20 * time.Millisecond, State: got.State,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("snapshot (-want +got):\n%s", diff)
		}
		if got.State == nil {
			t.Error("it has no memory of the decisions before")
		}
		w.runtime.end(keyOf(string(fn.UID), w.runtime.take()[0].CID), "killed")
		w.after(time.Millisecond)
		if !w.snapshot(fn).Failing {
			t.Error("it does not say that the last start failed")
		}
	})
}

func TestAFunctionsOwnDeciderCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		own  string
		want int
	}{
		// Listing 1 buys an instance per call that waits for the first one.
		"the scheduler's": {"", 5},
		"its own":         {"Horizon", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inHarness(t, defaults(), func(w *harness) {
				fn := w.put("f", decidedBy(tt.own))
				w.gateway("g:1").offer(fn, 1, 2, 3, 4, 5)
				w.started(fn, 1)
				w.ticks(1)
				more := len(w.runtime.take())
				if got := 1 + more; (got == 5) != (tt.want == 5) {
					t.Errorf("%d were launched, want about %d", got, tt.want)
				}
			})
		})
	}
}

func TestAnUnknownDeciderIsRefused(t *testing.T) {
	config := DefaultConfig()
	config.Decider = "best"
	_, err := New(config, Deps{Registry: prometheus.NewRegistry()})
	if err == nil || !strings.Contains(err.Error(), `Decider is "best": must be `+autoscaler.Choice()) {
		t.Errorf("error %v", err)
	}
}

// A decider that knows of no room asks for nothing. That room is made, or calls are
// refused with the reason, does not depend on the decider.
func TestALackOfRoomIsSeenToWhateverDecides(t *testing.T) {
	for _, name := range autoscaler.Names() {
		t.Run(name, func(t *testing.T) {
			config := defaults()
			config.node = 100
			inHarness(t, config, func(w *harness) {
				idle, g := w.put("idle"), w.gateway("g:1")
				g.offer(idle, 1)
				a := w.ready(w.started(idle, 1)[0])
				fn := w.put("f", decidedBy(name))
				g.offer(fn, 2)
				w.after(config.NoRoomPatience + time.Second)
				detail := g.expectRefused(controlwire.Refusal_REASON_NO_CAPACITY, 2).GetDetail()
				if !strings.Contains(detail, "1 node: 1 short of CPU (an instance requests 100m, a node has at most 0m free)") {
					t.Errorf("refused because %q", detail)
				}
				a.heard()
				a.pull(1, doneWith(1, time.Second))
				w.after(time.Minute)
				g.offer(fn, 3)
				w.ticks(2)
				a.expect("retire: made room for ns/f")
				a.obey()
				w.ticks(5)
				w.ready(w.started(fn, 1)[0]).expect("ticket 0003 at g:1")
			})
		})
	}
}

func TestRoomIsCountedOncePerTickAndPlacement(t *testing.T) {
	config := defaults()
	config.node = 1000
	inHarness(t, config, func(w *harness) {
		s := w.scheduler
		room := func(fn *v1alpha1.Function) int { return s.ticker.placer.room(s.shell.lookup(string(fn.UID)).spec()) }
		small := w.put("small")
		large := w.put("large", func(fn *v1alpha1.Function) {
			cpu := resource.MustParse("300m")
			fn.Spec.Template.Resources.Requests[corev1.ResourceCPU] = cpu
		})
		elsewhere := w.put("elsewhere", func(fn *v1alpha1.Function) { fn.Spec.Template.Placement.NodeSelector = map[string]string{"a": "b"} })
		s.ticker.placer.planner.BeginTick(time.Now())
		if a, b, c := room(small), room(large), room(elsewhere); a != 10 || b != 3 || c != 10 {
			t.Errorf("there is room for %d, %d and %d", a, b, c)
		}
		w.gateway("g:1").offer(w.put("other"), 1)
		if got := room(small); got != 10 {
			t.Errorf("room %d was counted again in the same tick", got)
		}
		s.ticker.placer.planner.BeginTick(time.Now())
		if got := room(small); got != 9 {
			t.Errorf("room %d with an instance, want 9", got)
		}
	})
}

func TestCancelledLaunchesAreEndedAndCounted(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2, 3, 4)
		w.ticks(1)
		specs := w.started(fn, 4)
		a := w.ready(specs[0])
		f := w.scheduler.shell.lookup(string(fn.UID))
		c := &evaluation{unitSpec: f.unitSpec, unit: f, Decided: unwanted(2, autoscaler.ReasonSurplus)}
		w.scheduler.ticker.cancelSurplus(c)
		if len(c.cancelled) != 2 || c.cancelled[0].CID != specs[3].CID || c.cancelled[1].CID != specs[2].CID {
			t.Errorf("cancelled %v", c.cancelled)
		}
		w.expectCounts(fn, provisioner.Counts{Created: 1, Creating: 1})
		w.expectLog("cancelled instances", "function=ns/f", "cancelled=2", "reason=Surplus")
		series := w.scrape("function")
		if series["instances_cancelled_total{f,ns}"] != 2 || series["instances_failed_total{f,ns}"] != 0 {
			t.Errorf("counted: %v", series)
		}
		a.heard()
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
	})
}

// An agent that waits for its function is cancelled after those of which nothing was
// heard, and runs no call for it.
func TestAnInstanceThatWaitsForItsFunctionIsCancelledLast(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.runtime.deaf = true
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2, 3, 4)
		w.ticks(1)
		specs := w.started(fn, 4)
		w.ready(specs[0]).expect("ticket 0001 at g:1")
		young, old := w.hello(specs[3]), w.hello(specs[2])
		f := w.scheduler.shell.lookup(string(fn.UID))
		cancel := func(n int) int {
			c := &evaluation{unitSpec: f.unitSpec, unit: f, Decided: unwanted(n, "")}
			w.scheduler.ticker.cancelSurplus(c)
			w.after(0)
			return len(c.cancelled)
		}
		if got := cancel(1); got != 1 {
			t.Errorf("cancelled %d", got)
		}
		young.expect()
		old.expect()
		if got := cancel(9); got != 2 {
			t.Errorf("cancelled %d, want the two that wait", got)
		}
		for _, a := range []*agent{young, old} {
			a.expect("retire: no longer needed")
			a.pull(1) // its function has come up all the same
			a.expect()
		}
		w.expectCounts(fn, provisioner.Counts{Created: 1, Leaving: 3})
	})
}

// A decision that cancels a surplus leaves calls that wait served, and nothing else.
func TestASurplusThatAppearsIsCancelled(t *testing.T) {
	config := defaults()
	config.Decider = "Horizon"
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		w.scheduler.shell.deps.Estimates = nil
		f := w.scheduler.shell.lookup(string(fn.UID))
		w.scheduler.observed(f, 10*time.Second) // which makes every call need an instance
		w.scheduler.learnStart(f, 2*time.Second)
		for n := range 40 {
			g.offer(fn, n)
			w.after(50 * time.Millisecond)
		}
		before := w.instances.Observe(f.uid).Counts.Creating
		for n := range 40 {
			g.cancel(fn, n)
		}
		w.after(10 * time.Second)
		after := w.instances.Observe(f.uid).Counts.Creating
		if before < 10 || after >= before {
			t.Errorf("%d were being created with 40 calls, and %d without any", before, after)
		}
	})
}

func TestPlacementsThatDifferHaveDifferentNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		selector := rapid.MapOf(rapid.StringN(0, 3, -1), rapid.StringN(0, 3, -1))
		a, b := newTestFunction("a"), newTestFunction("b")
		a.Spec.Template.Placement.NodeSelector, b.Spec.Template.Placement.NodeSelector = selector.Draw(t, "a"), selector.Draw(t, "b")
		same := cmp.Equal(a.Spec.Template.Placement.NodeSelector, b.Spec.Template.Placement.NodeSelector)
		if got := whereOf(a) == whereOf(b); got != same {
			t.Fatalf("%v and %v are the same: %v", a.Spec.Template.Placement.NodeSelector, b.Spec.Template.Placement.NodeSelector, got)
		}
	})
}
