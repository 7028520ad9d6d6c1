package scheduler

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// value is one series of ns/f.
func (w *harness) value(name string) float64 {
	w.t.Helper()
	value, there := w.scrape("function")[name+"{f,ns}"]
	if !there {
		w.t.Errorf("there is no %s", name)
	}
	return value
}

func TestWhoWaitsInVainAndLeavesIsCounted(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1), concurrency(3))
		w.ticks(1)
		w.ready(w.started(fn, 1)[0])
		if asked, waiting := w.value("pulls_total"), w.value("pulls_waiting"); asked != 3 || waiting != 3 {
			t.Errorf("%v calls were asked for and %v wait, want 3 and 3", asked, waiting)
		}
	})
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		a.pull(1, doneWith(1, time.Millisecond))
		a.askToLeave(time.Minute)
		if vain, expired := w.value("leave_requests_total"), w.value("instances_expired_total"); vain != 1 || expired != 0 {
			t.Errorf("%v waited for nothing and %v expired, want 1 and 0", vain, expired)
		}
		a.askToLeave(2 * time.Hour)
		if vain, expired := w.value("leave_requests_total"), w.value("instances_expired_total"); vain != 2 || expired != 1 {
			t.Errorf("%v waited for nothing and %v expired, want 2 and 1", vain, expired)
		}
	})
}

// What agents say of executions is held within what the timeout allows, and a call that did not
// run took no time.
func TestExecutionsAreCounted(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		timeout := fn.Spec.Template.Timeout.Duration
		for i, took := range []time.Duration{250 * time.Millisecond, 0, -time.Second, timeout + time.Hour} {
			g.offer(fn, i+2)
			a.pull(1, doneWith(i+1, took))
		}
		families, err := w.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() != executionsDecl.Name {
				continue
			}
			h := family.GetMetric()[0].GetHistogram()
			if want := (250*time.Millisecond + timeout).Seconds(); h.GetSampleCount() != 2 || h.GetSampleSum() != want {
				t.Errorf("%d executions took %v s, want 2 and %v", h.GetSampleCount(), h.GetSampleSum(), want)
			}
			return
		}
		t.Error("nothing is told")
	})
}

// Who was told to go did not leave because no call came.
func TestWhoWasToldToGoDidNotExpire(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		w.put("f", maxInstances(1))
		w.ticks(1)
		told := a
		if len(b.heard()) > 0 {
			told = b
		}
		told.askToLeave(time.Minute)
		if expired := w.value("instances_expired_total"); expired != 0 {
			t.Errorf("%v expired", expired)
		}
	})
}

func TestAnAgentIsSilentUntilItsInstanceIsKnownToHaveEnded(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		w.runtime.deaf = true
		expect := func(want float64) {
			t.Helper()
			w.after(0)
			if got := w.value("agents_silent"); got != want {
				t.Errorf("%v agents are silent, want %v", got, want)
			}
		}
		expect(0)
		a.cut()
		expect(1)
		w.ready(specs[0])
		expect(0)
		// One that leaves is expected to close its stream.
		b.goodbye(agentwire.Goodbye_REASON_DONE, "")
		b.closeSend()
		expect(0)
		a.cut()
	})
}

// An instance that leaves as it should is not lost. The series of silent agents is there before the first one.
func TestInstancesThatAreLostAreCounted(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(4))
		lost := func() map[string]float64 {
			w.after(0)
			got := w.scrape("function")
			maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.HasPrefix(name, "instances_lost_total") })
			return got
		}
		w.ticks(1)
		specs := w.started(fn, 4)
		agents := make([]*agent, 0, len(specs))
		for _, spec := range specs {
			agents = append(agents, w.ready(spec))
		}
		if diff := cmp.Diff(map[string]float64{"instances_lost_total{f,ns,AgentSilent}": 0}, lost()); diff != "" {
			t.Errorf("before one is lost (-want +got):\n%s", diff)
		}
		agents[0].goodbye(agentwire.Goodbye_REASON_DONE, "")
		agents[0].closeSend()
		w.runtime.fail(agents[1].key, v1alpha1.ReasonOutOfMemory, "too much")
		agents[2].goodbye(agentwire.Goodbye_REASON_CALL_BROKEN, "why")
		agents[2].closeSend()
		agents[3].cut()
		w.after(12 * time.Second)
		if diff := cmp.Diff(map[string]float64{
			"instances_lost_total{f,ns,AgentSilent}": 1, "instances_lost_total{f,ns,CallBroken}": 1, "instances_lost_total{f,ns,OutOfMemory}": 1,
		}, lost()); diff != "" {
			t.Errorf("after three were lost (-want +got):\n%s", diff)
		}
	})
}

func TestTheTermsOfTheLastDecisionAreTold(t *testing.T) {
	config := defaults()
	config.Decider = "Horizon"
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		terms := func() map[string]float64 {
			got := w.scrape("function")
			maps.DeleteFunc(got, func(name string, _ float64) bool {
				return name != "desired_instances{f,ns}" && name != "horizon_seconds{f,ns}" && name != "estimated_arrivals_per_second{f,ns}"
			})
			return got
		}
		if got := terms(); len(got) != 0 {
			t.Errorf("nothing was decided, and told is %v", got)
		}
		g.offer(fn, 1)
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		for i := range 20 {
			g.offer(fn, i+2)
			w.ticks(1)
			a.pull(1, doneWith(i+1, 10*time.Millisecond))
		}
		if got := terms(); got["desired_instances{f,ns}"] < 1 || got["horizon_seconds{f,ns}"] <= 0 || got["estimated_arrivals_per_second{f,ns}"] <= 0 {
			t.Errorf("while calls come, told is %v", got)
		}
		a.pull(1, doneWith(21, 10*time.Millisecond))
		for _, spec := range w.runtime.take() {
			w.ready(spec)
		}
		w.ticks(2)
		if got := terms()["desired_instances{f,ns}"]; got < 1 {
			t.Errorf("a moment after the last call, told is that %v are needed", got)
		}
		w.ticks(101)
		if diff := cmp.Diff(map[string]float64{"desired_instances{f,ns}": 0}, terms()); diff != "" {
			t.Errorf("of an idle function is told (-want +got):\n%s", diff)
		}
	})
}

func TestSlotsThatComeAndGoAreCounted(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		expect := func(gained, lost, epoch float64) {
			t.Helper()
			w.after(core.AuditEvery)
			moves := w.scrape("direction")
			families, err := w.registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := -1.0
			for _, f := range families {
				if f.GetName() == "windlass_scheduler_highest_epoch" {
					got = f.GetMetric()[0].GetGauge().GetValue()
				}
			}
			if moves["slot_moves_total{gained}"] != gained || moves["slot_moves_total{lost}"] != lost || got != epoch {
				t.Errorf("moves %v, highest epoch %v, want %v gained, %v lost, epoch %v", moves, got, gained, lost, epoch)
			}
		}
		expect(ownership.Slots, 0, 7)
		w.ownership.lose("other:1")
		expect(ownership.Slots, ownership.Slots, 0)
		w.ownership.silence() // who stands in owns nothing
		expect(ownership.Slots, ownership.Slots, 8)
		w.ownership.own(true)
		expect(2*ownership.Slots, ownership.Slots, 7)
	})
}

func TestASlotThatWasLostInBetweenHasMovedTwice(t *testing.T) {
	var owned slotEpochs
	for i, tc := range []struct {
		epochs       map[ownership.Slot]uint64
		gained, lost int
	}{
		{nil, 0, 0},
		{map[ownership.Slot]uint64{1: 5, 2: 6}, 2, 0},
		{map[ownership.Slot]uint64{1: 5, 2: 6}, 0, 0},
		{map[ownership.Slot]uint64{1: 5, 2: 9, 3: 10}, 2, 1},
		{nil, 0, 3},
	} {
		gained, lost := owned.update(func(slot ownership.Slot) uint64 { return tc.epochs[slot] })
		if gained != tc.gained || lost != tc.lost {
			t.Errorf("step %d: %d gained, %d lost, want %d, %d", i, gained, lost, tc.gained, tc.lost)
		}
	}
}

func TestNodesAreTold(t *testing.T) {
	config := defaults()
	config.node = 1000
	inHarness(t, config, func(w *harness) {
		if got := w.scrape("node_name"); got["node_requested_ratio{n,cpu}"] != 0 || len(got) != 2 {
			t.Errorf("of an empty node is told %v", got)
		}
		fn := w.put("f", minInstances(3))
		w.ticks(1)
		w.started(fn, 3)
		got := w.scrape("node_name")
		if got["node_instances{n}"] != 3 || got["node_requested_ratio{n,cpu}"] != 0.3 || got["node_requested_ratio{n,memory}"] <= 0 {
			t.Errorf("told is %v", got)
		}
		w.catalog.Remove(fn.Key())
		w.ticks(1)
		if got := w.scrape("node_name"); len(got) != 2 || got["node_requested_ratio{n,cpu}"] != 0 {
			t.Errorf("when all have ended, told is %v", got)
		}
	})
}

func TestTicksAreTimed(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.ticks(5)
		if lag := w.histogram("windlass_scheduler_tick_lag_seconds", ""); lag != (counted{5, 0}) {
			t.Errorf("lags %+v", lag)
		}
		if ticks := w.histogram("windlass_scheduler_tick_duration_seconds", ""); ticks.n != 5 {
			t.Errorf("ticks %+v", ticks)
		}
		w.scheduler.shell.metrics.observeLag(2 * time.Second)
		if lag := w.histogram("windlass_scheduler_tick_lag_seconds", ""); lag != (counted{6, 2}) {
			t.Errorf("lags %+v", lag)
		}
	})
}

// Why instances fail is one of the few reasons that a Function can have.
func TestFailuresAreCountedByReason(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.hello(w.started(fn, 1)[0]).goodbye(agentwire.Goodbye_REASON_START_TIMED_OUT, "it took too long, at 12:00")
		w.after(2 * time.Second)
		g.offer(fn, 2)
		w.runtime.end(keyOf(string(fn.UID), w.started(fn, 1)[0].CID), "exited with status 77")
		w.after(0)
		got := w.scrape("reason")
		if got["instances_failed_total{f,ns,StartTimeout}"] != 1 || got["instances_failed_total{f,ns,StartFailed}"] != 1 {
			t.Errorf("told is %v", got)
		}
	})
}

// Without a Registry all works, and nothing is counted.
func TestNobodyNeedsToBeTold(t *testing.T) {
	config := defaults()
	config.noRegistry = true
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2)
		a := w.ready(w.started(fn, 1)[0])
		a.expect("ticket 0001 at g:1")
		a.tells(&agentwire.AgentReport{Calls: 1})
		w.after(core.AuditEvery)
		w.catalog.Remove(fn.Key())
		w.ticks(1)
		w.expectCounts(fn, provisioner.Counts{Leaving: 1})
		if families, err := w.registry.Gather(); err != nil || len(families) != 0 {
			t.Errorf("%d metrics are told of, %v", len(families), err)
		}
	})
}
