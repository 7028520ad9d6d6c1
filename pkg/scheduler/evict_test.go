package scheduler

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

// full is a world whose node is full of three instances.
func full() harnessConfig {
	config := defaults()
	config.node = 300
	return config
}

// obey lets a retired instance go.
func (a *agent) obey() {
	a.goodbye(agentwire.Goodbye_REASON_DONE, "retired")
	a.closeSend()
}

func TestLongestIdleInstanceMakesRoom(t *testing.T) {
	inHarness(t, full(), func(w *harness) {
		g := w.gateway("g:1")
		var agents []*agent
		for n, name := range []string{"busy", "old", "young"} {
			fn := w.put(name)
			g.offer(fn, n)
			agents = append(agents, w.ready(w.started(fn, 1)[0]))
		}
		busy, old, young := agents[0], agents[1], agents[2]
		old.pull(1, doneWith(1, time.Second))
		w.after(time.Second)
		young.pull(1, doneWith(2, time.Second))
		w.after(10 * time.Second)
		busy.heard()
		old.heard()
		young.heard()

		fn := w.put("f")
		g.offer(fn, 10)
		old.expect() // that is for the tick
		w.ticks(1)
		old.expect("retire: made room for ns/f")
		w.expectLog("evicted an idle instance", "function=ns/old", "made room for ns/f", "idle=11.1s")
		// Only one goes, however long it takes, and nothing is refused.
		w.after(7 * time.Second)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		w.started(fn, 0)
		old.obey()
		w.ticks(1)
		w.ready(w.started(fn, 1)[0]).expect("ticket 0010 at g:1")
		busy.expect()
		young.expect()
		if got := w.scrape("function")["instances_evicted_total{old,ns}"]; got != 1 {
			t.Errorf("%v evictions are counted", got)
		}
	})
}

func TestWhoIsNotEvicted(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.Function)
		// before is done with the only instance of the function that fills
		// the node, idle for an hour.
		before func(w *harness, a *agent, fn *v1alpha1.Function)
	}{
		"one of the least":     {change: minInstances(1)},
		"one that runs a call": {before: func(w *harness, a *agent, fn *v1alpha1.Function) { w.gateway("g:2").offer(fn, 1) }},
		"one that has just run a call": {before: func(w *harness, a *agent, fn *v1alpha1.Function) {
			w.gateway("g:2").offer(fn, 1)
			a.pull(1, doneWith(1, 1))
		}},
		"one whose call may have been missed": {before: missACall},
		"one that leaves already":             {before: func(w *harness, a *agent, fn *v1alpha1.Function) { a.goodbye(agentwire.Goodbye_REASON_DONE, "") }},
		"one that is away":                    {before: func(w *harness, a *agent, fn *v1alpha1.Function) { a.cut() }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := defaults()
			config.node = 100
			inHarness(t, config, func(w *harness) {
				w.runtime.deaf = true
				keep := w.put("keep", minInstances(1))
				w.ticks(1)
				a := w.ready(w.started(keep, 1)[0])
				if tt.change == nil {
					tt.change = minInstances(0)
				}
				keep = w.put("keep", tt.change)
				w.after(time.Hour)
				if tt.before != nil {
					tt.before(w, a, keep)
				}
				a.heard()
				w.gateway("g:1").offer(w.put("f"), 10)
				w.ticks(3)
				a.expect()
			})
		})
	}
}

// missACall hands an instance a ticket and takes it back.
func missACall(w *harness, _ *agent, fn *v1alpha1.Function) {
	g := w.gateway("g:2")
	g.offer(fn, 1)
	w.after(w.scheduler.shell.config.ClaimGrace)
	g.offer(fn, 1)
	g.cancel(fn, 1)
	w.after(time.Hour)
}

func TestIdleForTooShortIsEvictedAsSoonAsItIsLongEnough(t *testing.T) {
	config := defaults()
	config.node = 100
	inHarness(t, config, func(w *harness) {
		keep, g := w.put("keep"), w.gateway("g:1")
		g.offer(keep, 1)
		a := w.ready(w.started(keep, 1)[0])
		a.pull(1, doneWith(1, time.Millisecond))
		a.heard()
		g.offer(w.put("f"), 10)
		w.after(w.scheduler.shell.config.EvictAfter - time.Millisecond)
		a.expect()
		w.ticks(1)
		a.expect("retire: made room for ns/f")
	})
}

func TestEachFunctionWithoutRoomEvictsOne(t *testing.T) {
	inHarness(t, full(), func(w *harness) {
		idle, g := w.put("idle", minInstances(3)), w.gateway("g:1")
		w.ticks(1)
		var agents []*agent
		for _, spec := range w.started(idle, 3) {
			agents = append(agents, w.ready(spec))
		}
		w.put("idle", minInstances(1))
		w.after(time.Hour)
		for n, name := range []string{"a", "b", "c"} {
			g.offer(w.put(name), n)
		}
		w.ticks(3)
		retired := 0
		for _, a := range agents {
			retired += len(a.heard())
		}
		if retired != 2 {
			t.Errorf("%d were evicted, want all but the least", retired)
		}
		w.expectCounts(idle, provisioner.Counts{Created: 1, Leaving: 2})
	})
}

func TestSeveralGoOneAfterTheOtherForALargeOne(t *testing.T) {
	inHarness(t, full(), func(w *harness) {
		idle, g := w.put("idle", minInstances(3)), w.gateway("g:1")
		w.ticks(1)
		var agents []*agent
		for _, spec := range w.started(idle, 3) {
			agents = append(agents, w.ready(spec))
		}
		w.put("idle")
		w.after(time.Hour)
		large := w.put("large", func(fn *v1alpha1.Function) {
			cpu := resource.MustParse("200m")
			fn.Spec.Template.Resources.Requests[corev1.ResourceCPU] = cpu
		})
		g.offer(large, 1)
		// Of equals, those of lower rank go first.
		for _, a := range []*agent{agents[2], agents[1]} {
			w.ticks(2)
			w.started(large, 0)
			a.expect("retire: made room for ns/large")
			a.obey()
		}
		w.ticks(1)
		w.started(large, 1)
		agents[0].expect()
	})
}

// A function that has an instance, and is short of more, gets room at the expense of
// its own namespace, and of others as long as its own has less than an equal share.
func TestWhoMakesRoomForAFunctionThatHasAnInstance(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace string
		idle      int
		evicted   int
	}{
		"its own namespace":                      {"ns", 2, 2},
		"nobody, for its namespace has its half": {"other", 2, 0},
		"another namespace, until each has half": {"other", 3, 1},
		"another one, up to half of five":        {"other", 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			config := defaults()
			config.node = int64(100 * (tt.idle + 1))
			inHarness(t, config, func(w *harness) {
				elsewhere := func(fn *v1alpha1.Function) { fn.Namespace = tt.namespace }
				idle, fn, g := w.put("idle", elsewhere, minInstances(int32(tt.idle))), w.put("f"), w.gateway("g:1")
				w.ticks(1)
				var agents []*agent
				for _, spec := range w.started(idle, tt.idle) {
					agents = append(agents, w.ready(spec))
				}
				w.put("idle", elsewhere)
				w.after(time.Hour)
				g.offer(fn, 1, 2, 3, 4, 5, 6)
				w.ready(w.started(fn, 1)[0])
				evicted := 0
				for range 10 {
					w.ticks(2)
					for _, a := range agents {
						if slices.Contains(a.heard(), "retire: made room for ns/f") {
							evicted++
							a.obey()
						}
					}
				}
				w.started(fn, tt.evicted)
				if evicted != tt.evicted {
					t.Errorf("%d were evicted, want %d", evicted, tt.evicted)
				}
				g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
			})
		})
	}
}

func TestEvictedInstanceThatDoesNotGoIsStopped(t *testing.T) {
	config := defaults()
	config.node = 100
	inHarness(t, config, func(w *harness) {
		idle, fn, g := w.put("idle"), w.put("f"), w.gateway("g:1")
		g.offer(idle, 1)
		a := w.ready(w.started(idle, 1)[0])
		a.pull(1, doneWith(1, time.Millisecond))
		w.after(time.Minute)
		g.offer(fn, 2)
		w.after(capacity.EvictGrace + 2*time.Second)
		w.started(fn, 1)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
	})
}
