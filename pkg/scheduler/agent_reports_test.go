package scheduler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// tells sends a report with a ping.
func (a *agent) tells(r *agentwire.AgentReport) {
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{EveryNs: int64(time.Hour), Report: r}}})
	synctest.Wait()
}

// expectAgents expects what is told of ns/f's agents.
func (w *harness) expectAgents(want map[string]float64) {
	w.t.Helper()
	got := map[string]float64{}
	for name, value := range w.scrape("function") {
		for _, of := range []string{
			"windlass_agent_calls_total", "windlass_agent_calls_broken_total", "windlass_agent_claims_refused_total",
			"windlass_agent_core_asks_total", "windlass_agent_failed_open_total",
			"windlass_agent_reconnects_total", "windlass_agent_cpu_seconds_total", "windlass_agent_resident_memory_bytes", "instances_backed_off",
		} {
			if name == of+"{f,ns}" {
				got[of] = value
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("agents (-want +got):\n%s", diff)
	}
}

func TestWhatAgentsSayIsSummedUp(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		want := map[string]float64{"instances_backed_off": 0}
		w.expectAgents(want)

		a.tells(&agentwire.AgentReport{Calls: 10, Broken: 1, ClaimsRefused: 2, Reconnects: 3, CpuNs: 1e9, ResidentBytes: 100})
		b.tells(&agentwire.AgentReport{Calls: 5, CpuNs: 5e8, ResidentBytes: 200, BackedOff: true})
		a.tells(&agentwire.AgentReport{Calls: 11, Broken: 1, ClaimsRefused: 2, CoreAsks: 7, CoreTimeouts: 2, Reconnects: 3, CpuNs: 2e9, ResidentBytes: 90})
		want = map[string]float64{
			"windlass_agent_calls_total": 16, "windlass_agent_calls_broken_total": 1, "windlass_agent_claims_refused_total": 2,
			"windlass_agent_core_asks_total": 7, "windlass_agent_failed_open_total": 2,
			"windlass_agent_reconnects_total": 3, "windlass_agent_cpu_seconds_total": 2.5, "windlass_agent_resident_memory_bytes": 290,
			"instances_backed_off": 1,
		}
		w.expectAgents(want)

		// A stream that breaks and comes again is the same agent.
		a.cut()
		a = w.hello(specs[0])
		a.tells(&agentwire.AgentReport{Calls: 12, Broken: 1, ClaimsRefused: 2, CoreAsks: 7, CoreTimeouts: 2, Reconnects: 4, CpuNs: 2e9, ResidentBytes: 90})
		want["windlass_agent_calls_total"], want["windlass_agent_reconnects_total"] = 17, 4
		w.expectAgents(want)

		// What has ended holds no memory, and has done what it did.
		b.die()
		want["windlass_agent_resident_memory_bytes"], want["instances_backed_off"] = 90, 0
		w.expectAgents(want)
		a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{}}}) // of an older release
		w.after(0)
		w.expectAgents(want)
		if n := len(w.scheduler.shell.lookup(string(fn.UID)).stats.reports.last); n != 1 {
			t.Errorf("reports of %d agents are kept, want 1", n)
		}
	})
}

// What an agent counted before its function came here was told by another scheduler.
func TestWhatAgentsSaidElsewhereIsNotSummedUp(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.lose("other:1")
		fn := w.put("f")
		w.runtime.existing = []provisioner.Existing{{CID: "00000008-000001", Revision: fn.Revision(), Node: "n", Started: time.Now(), Ran: true}}
		w.ownership.silence()
		w.after(core.AuditEvery)
		a := w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: "00000008-000001"})
		a.pull(1)
		a.tells(&agentwire.AgentReport{Calls: 1000, CpuNs: 1e12, ResidentBytes: 7})
		a.tells(&agentwire.AgentReport{Calls: 1003, CpuNs: 1001e9, ResidentBytes: 8})
		w.expectAgents(map[string]float64{
			"windlass_agent_calls_total": 3, "windlass_agent_calls_broken_total": 0, "windlass_agent_claims_refused_total": 0,
			"windlass_agent_core_asks_total": 0, "windlass_agent_failed_open_total": 0,
			"windlass_agent_reconnects_total": 0, "windlass_agent_cpu_seconds_total": 1, "windlass_agent_resident_memory_bytes": 8,
			"instances_backed_off": 0,
		})
		w.ownership.lose("other:1")
		w.after(core.AuditEvery)
		if last := w.scheduler.shell.lookup(string(fn.UID)).stats.reports.last; last != nil {
			t.Errorf("kept %v", last)
		}
	})
}

// The stream of an agent may outlive its instance, as the scheduler knows it.
func TestReportsOfInstancesThatWereDroppedDoNotCountAgain(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		a.tells(&agentwire.AgentReport{Calls: 10, CpuNs: 1e9, ResidentBytes: 100})
		w.runtime.fail(a.key, v1alpha1.ReasonNodeLost, "the node n was lost")
		synctest.Wait() // otherwise the report may come first
		a.tells(&agentwire.AgentReport{Calls: 12, CpuNs: 2e9, ResidentBytes: 100})
		w.expectAgents(map[string]float64{
			"windlass_agent_calls_total": 10, "windlass_agent_calls_broken_total": 0, "windlass_agent_claims_refused_total": 0,
			"windlass_agent_core_asks_total": 0, "windlass_agent_failed_open_total": 0,
			"windlass_agent_reconnects_total": 0, "windlass_agent_cpu_seconds_total": 1, "windlass_agent_resident_memory_bytes": 0,
			"instances_backed_off": 0,
		})
	})
}

// Whatever agents say, sums never fall, and those of honest agents are right.
func TestSumsOfReportsNeverFall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r agentReports
		honest := rapid.Bool().Draw(t, "honest")
		calls := map[invocation.CID]uint64{} // of instances that were not forgotten
		all, before := uint64(0), totals{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			cid := rapid.SampledFrom([]invocation.CID{"a", "b", "c"}).Draw(t, "cid")
			if rapid.IntRange(0, 5).Draw(t, "ends") == 0 {
				r.removeInstance(cid)
				delete(calls, cid)
				continue
			}
			now := report{totals: totals{calls: rapid.Uint64Range(0, 100).Draw(t, "calls"), cpu: rapid.Uint64Range(0, 100).Draw(t, "cpu")}, resident: 1}
			if honest {
				all += now.calls
				calls[cid] += now.calls
				now.calls = calls[cid]
			}
			r.addReport(cid, now, false)
			sum := r.sum()
			if sum.calls < before.calls || sum.cpu < before.cpu || honest && sum.calls != all || sum.resident != uint64(len(r.last)) {
				t.Fatalf("after %+v, of %d calls: %+v", before, all, sum)
			}
			before = sum.totals
		}
	})
}
