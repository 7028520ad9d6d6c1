package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// crew stands for all instances of a world: each begins startTime after it was launched,
// runs every call for as long, and goes when it is told to.
type crew struct {
	w        *harness
	answered map[string]bool
	agents   []*worker
	ready    map[time.Time][]func()
	evicted  int
}

type worker struct {
	*agent
	call string
	done time.Time
}

func newCrew(w *harness) *crew {
	return &crew{w: w, answered: make(map[string]bool), ready: make(map[time.Time][]func())}
}

// work lets the instances work for a while, in steps of a tick.
func (cr *crew) work(d, start, execution time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		cr.w.ticks(1)
		now := time.Now()
		for _, spec := range cr.w.runtime.take() {
			cr.ready[now.Add(start)] = append(cr.ready[now.Add(start)], func() {
				cr.agents = append(cr.agents, &worker{agent: cr.w.ready(spec)})
			})
		}
		for at, begin := range cr.ready {
			if !at.After(now) {
				for _, ready := range begin {
					ready()
				}
				delete(cr.ready, at)
			}
		}
		cr.agents = slices.DeleteFunc(cr.agents, func(a *worker) bool { return cr.look(a, now, execution) })
	}
}

// look lets one instance go on, and tells whether it has gone.
func (cr *crew) look(a *worker, now time.Time, execution time.Duration) (gone bool) {
	for _, said := range a.heard() {
		if n, _ := fmt.Sscanf(said, "ticket %s at g:1", &a.call); n == 1 {
			a.done = now.Add(execution)
			continue
		}
		if a.call != "" {
			cr.w.t.Errorf("%s hears %q while it runs %s", a.key.CID, said, a.call)
		}
		cr.evicted++
		a.obey()
		return true
	}
	if a.call != "" && !now.Before(a.done) {
		var n int
		_, _ = fmt.Sscanf(a.call, "%d", &n)
		cr.answered[a.call], a.call = true, ""
		a.pull(1, doneWith(n, execution))
	}
	return false
}

// fullNode is a world with room for so many instances.
func fullNode(room int) harnessConfig {
	config := defaults()
	config.Decider = "Horizon"
	config.node = int64(100 * room)
	return config
}

// Three times as many functions are called at once as there is room for: all calls are
// answered, and no more instances go than others need.
func TestAllAreAnsweredWhileRoomKeepsComingFree(t *testing.T) {
	const room, functions = 10, 30
	for name, tt := range map[string]struct{ start, execution time.Duration }{
		"short calls":              {time.Second, 50 * time.Millisecond},
		"starts beyond patience":   {8 * time.Second, time.Second},
		"calls nearly as patience": {time.Second, 4 * time.Second},
	} {
		for filled, idle := range map[string]bool{"empty nodes": false, "nodes full of idle instances": true} {
			t.Run(name+", "+filled, func(t *testing.T) {
				inHarness(t, fullNode(room), func(w *harness) {
					g, crew := w.gateway("g:1"), newCrew(w)
					before := 0
					if idle {
						for n := range room {
							g.offer(w.put(fmt.Sprint("before-", n)), 1000+n)
						}
						crew.work(2*tt.start+2*tt.execution, tt.start, tt.execution)
						if before = len(crew.answered); before != room {
							t.Fatalf("%d of %d functions that came before were answered", before, room)
						}
					}
					for n := range functions {
						fn := w.put(fmt.Sprint("f-", n), func(fn *v1alpha1.Function) { fn.Spec.Template.StartupTimeout.Duration = time.Minute })
						g.offer(fn, n)
					}
					crew.work(50*time.Second, tt.start, tt.execution)
					g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
					if got := len(crew.answered) - before; got != functions {
						t.Errorf("%d of %d calls were answered", got, functions)
					}
					if needed := functions + before - room; crew.evicted > needed {
						t.Errorf("%d instances were evicted, and %d were needed", crew.evicted, needed)
					}
				})
			})
		}
	}
}

// While all that is there is busy, nothing moves: what waits is refused, after as long
// as nothing has moved, however long it has waited.
func TestCallsAreRefusedOnceNothingHasMoved(t *testing.T) {
	inHarness(t, fullNode(2), func(w *harness) {
		g, patience := w.gateway("g:1"), w.scheduler.shell.config.NoRoomPatience
		short, long := w.put("short"), w.put("long")
		g.offer(short, 1)
		g.offer(long, 2)
		w.ticks(1)
		var agents []*agent
		for _, spec := range w.runtime.take() {
			agents = append(agents, w.ready(spec))
		}
		w.after(3 * time.Second)
		a, b := w.put("a"), w.put("b")
		g.offer(a, 3)
		w.ticks(1)
		g.offer(b, 4)
		w.after(3 * time.Second)
		// One answers: the call that waits longest gets the room, and the other
		// one has hope again.
		done := slices.IndexFunc(agents, func(a *agent) bool { return a.key.FunctionUID == string(short.UID) })
		agents[done].heard()
		agents[done].pull(1, doneWith(1, time.Second))
		w.ticks(2)
		agents[done].expect("retire: made room for ns/a")
		agents[done].obey()
		w.ticks(2)
		starting := w.started(a, 1)[0]
		w.after(2 * patience)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED) // it is on its way
		w.ready(starting).expect("ticket 0003 at g:1")
		w.after(patience - 2*w.scheduler.shell.config.Tick)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		w.ticks(5)
		g.expectRefused(controlwire.Refusal_REASON_NO_CAPACITY, 4)
	})
}

// What fits on no node is refused, whatever moves.
func TestWhatNoNodeCanHoldIsRefusedWhateverMoves(t *testing.T) {
	inHarness(t, fullNode(3), func(w *harness) {
		g, crew := w.gateway("g:1"), newCrew(w)
		huge := w.put("huge", func(fn *v1alpha1.Function) {
			cpu := resource.MustParse("400m")
			fn.Spec.Template.Resources.Requests[corev1.ResourceCPU] = cpu
		})
		g.offer(huge, 100)
		for n := range 8 {
			g.offer(w.put(fmt.Sprint("f-", n)), n)
			crew.work(time.Second, 100*time.Millisecond, 100*time.Millisecond)
		}
		g.expectRefused(controlwire.Refusal_REASON_NO_CAPACITY, 100)
	})
}

// Room that is made for a large instance is not taken bit by bit by small ones that
// come later.
func TestALargeInstanceIsNotStarvedBySmallOnes(t *testing.T) {
	inHarness(t, fullNode(4), func(w *harness) {
		g, crew := w.gateway("g:1"), newCrew(w)
		for n := range 4 {
			g.offer(w.put(fmt.Sprint("idle-", n)), 1000+n)
		}
		crew.work(3*time.Second, 100*time.Millisecond, 100*time.Millisecond)
		large := w.put("large", func(fn *v1alpha1.Function) {
			cpu := resource.MustParse("300m")
			fn.Spec.Template.Resources.Requests[corev1.ResourceCPU] = cpu
		})
		g.offer(large, 500)
		for n := range 40 {
			g.offer(w.put(fmt.Sprint("small-", n)), n)
			crew.work(100*time.Millisecond, 300*time.Millisecond, 100*time.Millisecond)
			if n == 20 && !crew.answered["0500"] {
				t.Error("the large one was not answered within 2 s")
			}
		}
		crew.work(20*time.Second, 300*time.Millisecond, 100*time.Millisecond)
		if len(crew.answered) != 45 {
			t.Errorf("%d of 45 calls were answered", len(crew.answered))
		}
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
	})
}

// Horizon plans with the room that there is. What it needs beyond that costs all spare instances in the
// way at once, and not one after the other has ended.
func TestSpareInstancesYieldTogether(t *testing.T) {
	config := defaults()
	config.Decider, config.node = "Horizon", 400
	inPoolHarness(t, 3, config, func(w *harness, rt *v1alpha1.ClusterRuntime, _, _ *v1alpha1.Function) {
		for _, spec := range w.started(poolFunction(rt), 3) {
			w.helloSpare(spec)
		}
		gw, other := w.gateway("g:1"), w.put("other")
		gw.offer(other, 1)
		key := keyOf(string(other.UID), w.started(other, 1)[0].CID)
		a := w.connectHello(&agentwire.Hello{FunctionUid: key.FunctionUID, Revision: other.Revision(), Cid: string(key.CID), Token: podName(key)})
		a.pull(1)
		a.pull(1, doneWith(1, time.Second))
		w.after(time.Minute)
		w.expectCounts(poolFunction(rt), provisioner.Counts{Created: 3})
		gw.offer(other, 2, 3, 4, 5) // the first goes to the instance
		w.ticks(2)
		w.expectCounts(poolFunction(rt), provisioner.Counts{})
		w.ticks(3)
		w.started(other, 3)
	})
}
