package scheduler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// greetAged says hello as an agent does that began so long ago, and whose function was
// ready so long after that; 0 if it is not.
func (w *harness) greetAged(spec provisioner.InstanceSpec, age, readyAfter time.Duration) *agent {
	w.t.Helper()
	return w.connectHello(&agentwire.Hello{
		FunctionUid: string(spec.Function.UID), Revision: spec.Function.Revision(), Cid: string(spec.CID),
		Token: spec.Token, AgeNs: int64(age), ReadyAfterNs: int64(readyAfter),
	})
}

// expectSpent expects what the starts of a function's instances took in all, and that
// none is kept that is over.
func (w *harness) expectSpent(fn *v1alpha1.Function, want *coldstart.Durations, kept int) {
	w.t.Helper()
	w.after(0)
	f := w.scheduler.shell.lookup(string(fn.UID))
	if diff := cmp.Diff(want, f.metricsSnapshot(time.Now()).phases); diff != "" {
		w.t.Errorf("starts took (-want +got):\n%s", diff)
	}
	if n := len(f.stats.pendingStarts); n != kept {
		w.t.Errorf("%d starts are kept, want %d", n, kept)
	}
}

func TestAStartIsToldInPhases(t *testing.T) {
	const ms = time.Millisecond
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		launched, spec := time.Now(), w.started(fn, 1)[0]
		key := keyOf(string(fn.UID), spec.CID)
		w.expectSpent(fn, nil, 1)
		w.runtime.has(key, launched.Add(20*ms), launched.Add(120*ms))
		w.after(900 * ms)
		a := w.greetAged(spec, 700*ms, 650*ms)
		w.after(5 * ms)
		a.pull(1)
		a.expect("ticket 0001 at g:1")
		want := &coldstart.Durations{0, 20 * ms, 100 * ms, 80 * ms, 650 * ms, 50 * ms, 5 * ms}
		w.expectSpent(fn, want, 0)
		// It comes again, which is no start.
		a.cut()
		w.greetAged(spec, 0, 0).pull(1)
		w.expectSpent(fn, want, 0)
		if got := w.histogram("windlass_scheduler_cold_start_duration_seconds", ""); got != (counted{1, 0.905}) {
			t.Errorf("whole starts: %+v", got)
		}
		if got := w.histogram("windlass_scheduler_cold_start_phase_duration_seconds", "ready"); got != (counted{1, 0.65}) {
			t.Errorf("the phase ready: %+v", got)
		}
	})
}

// An agent says hello while its function begins, and asks when that is ready.
func TestAFunctionThatIsReadyAfterTheHelloIsWaitedFor(t *testing.T) {
	const ms = time.Millisecond
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		spec := w.started(fn, 1)[0]
		w.after(200 * ms)
		a := w.greetAged(spec, 50*ms, 0)
		w.after(2 * time.Second)
		a.pull(1)
		w.expectSpent(fn, &coldstart.Durations{coldstart.Containers: 150 * ms, coldstart.Ready: 2050 * ms}, 0)
	})
}

func TestADecisionIsDueWhenTheFirstCallComes(t *testing.T) {
	const ms = time.Millisecond
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.started(fn, 1)
		g.offer(fn, 2, 3)
		w.ticks(1)
		second := w.started(fn, 2)[0]
		w.after(50 * ms)
		w.greetAged(second, 10*ms, 10*ms).pull(1)
		w.expectSpent(fn, &coldstart.Durations{coldstart.Decide: 100 * ms, coldstart.Containers: 40 * ms, coldstart.Ready: 10 * ms}, 2)
	})
}

// Nobody waited for what was started before it was called.
func TestAnInstanceThatNoCallWaitsForIsWantedWhenItIsOrdered(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		w.after(time.Second)
		w.ready(spec)
		w.after(time.Hour)
		w.expectSpent(fn, &coldstart.Durations{coldstart.Ready: time.Second}, 0)
	})
}

func TestATakenSpareInstanceHasOnlyThePhasesThatHappened(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
		spare := w.helloSpare(w.started(poolFunction(rt), 1)[0])
		gw := w.gateway("g:1")
		gw.offer(f, 1)
		launched := time.Now()
		w.after(takeTime)
		spare.expect("assigned to ns/f as 00000007-000001")
		w.runtime.has(keyOf("uid-f", "00000007-000001"), launched.Add(takeTime), launched)
		w.after(100 * time.Millisecond)
		spare.become().expect("ticket 0001 at g:1")
		w.expectSpent(f, &coldstart.Durations{coldstart.Create: takeTime, coldstart.Ready: 100 * time.Millisecond}, 0)
	})
}

func TestAStartThatComesToNothingIsForgotten(t *testing.T) {
	for name, end := range map[string]func(w *harness, fn *v1alpha1.Function, spec provisioner.InstanceSpec){
		"it fails": func(w *harness, fn *v1alpha1.Function, spec provisioner.InstanceSpec) {
			w.runtime.end(keyOf(string(fn.UID), spec.CID), "exited with status 3")
		},
		"another scheduler has it": func(w *harness, _ *v1alpha1.Function, _ provisioner.InstanceSpec) {
			w.ownership.lose("other:1")
			w.after(core.AuditEvery)
		},
		"its agent gives up": func(w *harness, _ *v1alpha1.Function, spec provisioner.InstanceSpec) {
			w.hello(spec).goodbye(agentwire.Goodbye_REASON_START_FAILED, "no")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSharedHarness(t, func(w *harness) {
				fn, g := w.put("f"), w.gateway("g:1")
				g.offer(fn, 1)
				spec := w.started(fn, 1)[0]
				g.cancel(fn, 1)
				end(w, fn, spec)
				w.expectSpent(fn, nil, 0)
			})
		})
	}
}

func TestASpareInstanceThatCannotBeTakenIsNoStart(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, f, _ *v1alpha1.Function) {
		w.helloSpare(w.started(poolFunction(rt), 1)[0])
		w.runtime.pods.result = provisioner.AssignFailed
		gw := w.gateway("g:1")
		gw.offer(f, 1)
		w.after(takeTime)
		// Another one is started instead.
		w.expectSpent(f, nil, 1)
	})
}

// How long others took is for them to tell.
func TestWhatAnotherSchedulerOrderedIsNotToldOf(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.lose("other:1")
		fn, g := w.put("f"), w.gateway("g:1")
		w.runtime.existing = []provisioner.Existing{{CID: "00000008-000001", Revision: fn.Revision(), Node: "n", Started: time.Now()}}
		w.ownership.silence()
		g.offer(fn, 1)
		a := w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: "00000008-000001", AgeNs: 1})
		a.pull(1)
		a.expect("ticket 0001 at g:1")
		w.expectSpent(fn, nil, 0)
	})
}

// Its end may be known before the launch is: a driver with too many to create ends it at once.
func TestAStartThatEndsAtOnceIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, defaults())
		exits := make(chan provisioner.Exit)
		w.runtime.exits = exits
		w.runtime.refuse = func(spec provisioner.InstanceSpec) {
			w.runtime.fail(keyOf(string(spec.Function.UID), spec.CID), v1alpha1.ReasonClusterUnavailable, "too many wait")
			// Who takes another exit has told the scheduler of the first.
			exits <- provisioner.Exit{FunctionUID: "nobody"}
		}
		defer w.run(t)()
		fn := w.put("f")
		w.gateway("g:1").offer(fn, 1)
		w.after(10 * time.Second)
		if n := len(w.runtime.take()); n < 2 {
			t.Fatalf("%d were started, want some", n)
		}
		w.expectSpent(fn, nil, 0)
		w.expectCounts(fn, provisioner.Counts{})
		w.expectReconciled()
	})
}
