package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
)

// scrape returns all series that have a label, as name{values} value. The revision is one
// of the values if it has a number.
func (w *harness) scrape(label string) map[string]float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	series := make(map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var values []string
			has := false
			for _, pair := range metric.GetLabel() {
				has = has || pair.GetName() == label
				if pair.GetName() != "revision" || len(pair.GetValue()) == len("00001") {
					values = append(values, pair.GetValue())
				}
			}
			if has {
				name := strings.TrimPrefix(family.GetName(), "windlass_scheduler_")
				// Two of the three are nil and have the value 0.
				value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetHistogram().GetSampleSum()
				series[fmt.Sprintf("%s{%s}", name, strings.Join(values, ","))] = value
			}
		}
	}
	return series
}

func (w *harness) expectSeries(want map[string]float64) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.scrape("function")); diff != "" {
		w.t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestMetricsComeAndGoWithTheFunction(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.expectSeries(map[string]float64{})
		fn, g := w.put("f", maxInstances(2)), w.gateway("g:1")
		want := map[string]float64{
			"queue_length{f,ns}":       0,
			"instances{f,ns,creating}": 0, "instances{f,ns,busy}": 0,
			"instances{f,ns,idle}": 0, "instances{f,ns,leaving}": 0,
		}
		w.expectSeries(want)

		g.offer(fn, 1, 2, 3)
		specs := w.started(fn, 1)
		w.ticks(1)
		specs = append(specs, w.started(fn, 1)...)
		want["queue_length{f,ns}"], want["queue_oldest_wait_seconds{f,ns}"] = 3, 0.1
		want["queue_newest_first{f,ns}"] = 0
		// What alerts read of refusals is there before the first one.
		want["invocations_refused_total{f,ns,CannotStart}"], want["invocations_refused_total{f,ns,NoCapacity}"] = 0, 0
		want["instances{f,ns,creating}"], want["instances_launched_total{f,ns}"] = 2, 2
		want["decisions_total{f,ns,FirstInstance}"], want["decisions_total{f,ns,AtMax}"] = 1, 1
		want["desired_instances{f,ns}"] = 2
		// What counts starts is there before the first one is over.
		want["instances_started_total{f,ns}"] = 0
		want["instances_lost_total{f,ns,AgentSilent}"] = 0
		for _, phase := range []string{"decide", "create", "sandbox", "containers", "ready", "hello", "claim"} {
			want["cold_start_phase_seconds_total{f,ns,"+phase+"}"] = 0
		}
		w.expectSeries(want)

		w.ready(specs[0]).pull(1, doneWith(1, 250*time.Millisecond))
		want["queue_length{f,ns}"], want["estimated_execution_seconds{f,ns}"], want["estimated_start_seconds{f,ns}"] = 1, 0.25, 0.1
		want["windlass_function_execution_duration_seconds{f,ns}"] = 0.25
		want["instances{f,ns,creating}"], want["instances{f,ns,busy}"] = 1, 1
		want["instances_started_total{f,ns}"] = 1
		want["pulls_total{f,ns}"], want["pulls_waiting{f,ns}"] = 2, 0
		want["leave_requests_total{f,ns}"], want["instances_expired_total{f,ns}"], want["loans{f,ns}"] = 0, 0, 0
		want["instances_backed_off{f,ns}"], want["agents_silent{f,ns}"] = 0, 0
		// Nothing is known of what was before the function was ready.
		want["cold_start_phase_seconds_total{f,ns,ready}"] = 0.1
		w.expectSeries(want)

		w.runtime.end(keyOf(string(fn.UID), specs[1].CID), "killed")
		g.cancel(fn, 3)
		want["queue_length{f,ns}"], want["queue_oldest_wait_seconds{f,ns}"] = 0, 0
		want["instances{f,ns,creating}"], want["instances_failed_total{f,ns,StartFailed}"] = 0, 1
		w.expectSeries(want)

		w.catalog.Remove(fn.Key())
		w.ticks(1)
		w.expectSeries(map[string]float64{})
	})
}

func TestStatusSaysWhatIsThere(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		known := metav1.Now()
		fn, g := w.put("f", minInstances(3), generation(4)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 3)
		a := w.ready(specs[0])
		w.ready(specs[1])
		g.offer(fn, 1)
		a.pull(1, doneWith(1, 1234567*time.Nanosecond))
		g.offer(fn, 2)

		got := w.scheduler.reporter.Status(fn)
		want := v1alpha1.FunctionStatus{
			ObservedGeneration: 4,
			Instances:          v1alpha1.InstanceCounts{Ready: 2, Desired: 3},
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStarted,
				Message: v1alpha1.MessageStarted, ObservedGeneration: 4, LastTransitionTime: known,
			}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		account, _ := w.scheduler.reporter.Report(fn.Key())
		if diff := cmp.Diff(&decisionlog.Load{Creating: 1, Busy: 1, Idle: 1, MeanExecution: 0.00123}, account.Load); diff != "" {
			t.Errorf("load (-want +got):\n%s", diff)
		}
		if got := w.scheduler.reporter.Totals(string(fn.UID)); got != (Totals{Launched: 3, Peak: 3}) {
			t.Errorf("totals %+v", got)
		}
	})
}

func TestAReportTellsOfTheLastWaitForACore(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		waits := func(a *agent, long time.Duration, byLoan bool) {
			id := idOf(1)
			a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{
				NodeBusy: true, CoreWait: &agentwire.CoreWait{InvocationId: id[:], WaitedNs: int64(long), ByLoan: byLoan},
			}}})
			synctest.Wait()
		}
		told := func() *decisionlog.CoreWait {
			report, _ := w.scheduler.reporter.Report(fn.Key())
			return report.LastCoreWait
		}
		if got := told(); got != nil {
			t.Errorf("nobody has waited, and it says %v", got)
		}
		waits(a, 50*time.Millisecond, false)
		waits(a, 100*time.Millisecond, false)
		want := &decisionlog.CoreWait{At: time.Now(), Instance: string(specs[0].CID), Node: specs[0].Node, Waited: .1}
		if diff := cmp.Diff(want, told()); diff != "" {
			t.Errorf("the last wait (-want +got):\n%s", diff)
		}
		waits(b, 50*time.Millisecond, true)
		b.pull(1)
		if got := told(); got == nil || got.Instance != string(specs[1].CID) || got.Waited != .05 {
			t.Errorf("after a call by a loan has waited elsewhere it says %v", got)
		}
		if text := want.String(); want.Node == "" || !strings.Contains(text, "100 ms for a core of node "+want.Node) {
			t.Errorf("it reads %q", text)
		}
	})
}

// An instance that finishes a long call before it leaves sends no pulls, so it could not say that its
// node is calm again.
func TestAnInstanceThatLeavesSaysNothingOfItsNode(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		a := w.ready(spec)
		a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{NodeBusy: true}}})
		synctest.Wait()
		if !w.scheduler.shell.busyNodes.has(spec.Node) {
			t.Error("its node does not count as busy")
		}
		a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{}}})
		synctest.Wait()
		if w.scheduler.shell.busyNodes.has(spec.Node) {
			t.Error("its node counts as busy after its goodbye")
		}
		a.cut()
		synctest.Wait()
		if w.scheduler.shell.busyNodes.some() {
			t.Error("a node counts as busy after its stream has ended")
		}
	})
}

// The gateway refuses one of the two instances, which is no sign of a fault.
func TestTicketsThatTwoInstancesGetOnPurposeAreCounted(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		g.offer(fn, 1)
		a.expect("ticket 0001 at g:1")
		id := idOf(1)
		for range 2 {
			a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{
				NodeBusy: true, CoreWait: &agentwire.CoreWait{InvocationId: id[:], WaitedNs: int64(50 * time.Millisecond)},
			}}})
			synctest.Wait()
		}
		b.expect("ticket 0001 at g:1")
		if got := w.value("tickets_rebound_total"); got != 1 {
			t.Errorf("%v tickets went to two instances", got)
		}
	})
}

func TestStatusOfAnUnknownFunctionIsEmpty(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := newTestFunction("nowhere")
		if diff := cmp.Diff(v1alpha1.FunctionStatus{}, w.scheduler.reporter.Status(fn)); diff != "" {
			t.Error(diff)
		}
		if got := w.scheduler.reporter.Totals(string(fn.UID)); got != (Totals{}) {
			t.Errorf("totals %+v", got)
		}
	})
}

func TestFunctionIsReadyAsLongAsAnInstanceIsThere(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		ready := func() metav1.Condition { return w.scheduler.reporter.Status(fn).Conditions[0] }
		w.ready(specs[0])
		w.runtime.end(keyOf(string(fn.UID), specs[1].CID), "killed")
		w.after(0)
		if c := ready(); c.Status != metav1.ConditionTrue {
			t.Errorf("%+v while an instance is there", c)
		}
		w.runtime.end(keyOf(string(fn.UID), specs[0].CID), "killed")
		w.after(0)
		c := ready()
		if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonStartFailed || !strings.Contains(c.Message, "last words") {
			t.Errorf("%+v after the last start failed", c)
		}
		if c.LastTransitionTime.IsZero() {
			t.Error("it does not say since when")
		}
	})
}

// Execution times come from agents, who may say what they like.
func TestExecutionTimesAreHeldWithinTheTimeout(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		mean := func() time.Duration { return w.scheduler.shell.lookup(string(fn.UID)).means().Execution }
		a.pull(1, doneWith(1, -time.Hour), doneWith(1, 0))
		if got := mean(); got != 0 {
			t.Errorf("mean %v of what nothing can have taken", got)
		}
		a.pull(1, doneWith(1, 1<<62))
		if got := mean(); got != time.Minute {
			t.Errorf("mean %v, want the timeout", got)
		}
	})
}

// counted is how often a histogram observed something, and what in sum.
type counted struct {
	n   uint64
	sum float64
}

// histogram returns a histogram, or the one of a phase.
func (w *harness) histogram(name, phase string) counted {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && (phase == "" || metric.GetLabel()[0].GetValue() == phase) {
				h := metric.GetHistogram()
				if len(h.GetBucket()) == 0 || len(h.GetPositiveSpan()) == 0 && h.GetZeroCount() == 0 {
					w.t.Errorf("%s lacks classic or native buckets", name)
				}
				return counted{h.GetSampleCount(), h.GetSampleSum()}
			}
		}
	}
	w.t.Fatalf("there is no %s %s", name, phase)
	return counted{}
}

func TestA20ReadyIsNoOlderThanWhatIsKnown(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		old := func(fn *v1alpha1.Function) { fn.CreationTimestamp = metav1.NewTime(time.Now().Add(-20 * time.Minute)) }
		known := time.Now()
		fn := w.put("f", old)
		since := func(want time.Time) {
			t.Helper()
			if c := w.scheduler.reporter.Status(fn).Conditions[0]; c.Reason != v1alpha1.ReasonAccepted || !c.LastTransitionTime.Time.Equal(want) {
				t.Errorf("it is %s since %v, want since %v", c.Reason, c.LastTransitionTime, want)
			}
		}
		since(known)
		w.after(time.Minute)
		fn = w.put("f", old, maxInstances(3))
		since(known)
		fn = w.put("f", old, revision(2))
		since(known.Add(time.Minute))
	})
}

func TestA2TheConditionIsOfTheRevisionThatIsServed(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		ready := func(fn *v1alpha1.Function, status metav1.ConditionStatus, reason string) {
			t.Helper()
			of := w.scheduler.reporter.Status(fn).Conditions[0]
			if of.Status != status || of.Reason != reason {
				t.Errorf("it is %s, %s, want %s, %s", of.Status, of.Reason, status, reason)
			}
			facts := w.scheduler.reporter.facts(w.scheduler.shell.lookup(string(fn.UID)))
			if facts.started != (reason == v1alpha1.ReasonStarted) || (facts.problem != "") != (status == metav1.ConditionFalse) {
				t.Errorf("watchers are told started %v and the problem %q, want %s", facts.started, facts.problem, reason)
			}
		}
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		broken := w.started(fn, 1)[0]
		ready(fn, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
		// What is asked for may be newer than what the scheduler has taken up.
		newer := newTestFunction("f", minInstances(1), generation(2))
		if of := w.scheduler.reporter.Status(newer).Conditions[0]; of.ObservedGeneration != 1 {
			t.Errorf("the condition is about generation %d, want 1", of.ObservedGeneration)
		}
		w.runtime.end(keyOf(string(fn.UID), broken.CID), "a syntax error")
		w.after(time.Millisecond)
		ready(fn, metav1.ConditionFalse, v1alpha1.ReasonStartFailed)

		fn = w.put("f", minInstances(1), revision(2))
		ready(fn, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
		w.ticks(1)
		w.ready(w.started(fn, 1)[0])
		ready(fn, metav1.ConditionTrue, v1alpha1.ReasonStarted)

		// More or fewer of the same are no reason to doubt it, and another program is.
		fn = w.put("f", minInstances(1), revision(2), maxInstances(3))
		ready(fn, metav1.ConditionTrue, v1alpha1.ReasonStarted)
		fn = w.put("f", revision(3))
		ready(fn, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	})
}

func TestWatchersHearOfStartsThatFailThoughOthersServe(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		two := w.started(fn, 2)
		w.ready(two[0])
		w.runtime.end(keyOf(string(fn.UID), two[1].CID), "a syntax error")
		w.after(time.Millisecond)
		facts := w.scheduler.reporter.facts(w.scheduler.shell.lookup(string(fn.UID)))
		if facts.created != 1 || facts.problem != v1alpha1.ReasonStartFailed || !strings.Contains(facts.detail, "a syntax error") {
			t.Errorf("they are told %+v", facts)
		}
		if of := w.scheduler.reporter.Status(fn).Conditions[0]; of.Status != metav1.ConditionTrue {
			t.Errorf("Ready is %+v", of)
		}
	})
}

// An instance that has said why it does not start may end after its function was mended.
func TestA2AFailureOfAnOlderRevisionSaysNothingOfTheMendedOne(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.runtime.deaf = true
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		broken := w.started(fn, 1)[0]
		w.hello(broken).goodbye(agentwire.Goodbye_REASON_START_FAILED, "a syntax error")
		old := fn
		fn = w.put("f", revision(2))
		w.runtime.end(keyOf(string(old.UID), broken.CID), "it was told to")
		w.after(time.Millisecond)
		if of := w.scheduler.reporter.Status(fn).Conditions[0]; of.Status != metav1.ConditionTrue {
			t.Errorf("the mended function is said to fail: %s", of.Message)
		}
	})
}

// It may also end after all that ran is gone, while calls wait for the mended function.
func TestA2AFailureOfAnOlderRevisionRefusesNoCall(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.runtime.deaf = true
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		broken := w.started(fn, 1)[0]
		w.hello(broken).goodbye(agentwire.Goodbye_REASON_START_FAILED, "a syntax error")
		old := fn
		fn = w.put("f", revision(2))
		g.offer(fn, 1)
		w.runtime.end(keyOf(string(old.UID), broken.CID), "it was told to")
		w.after(time.Millisecond)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		g.offer(fn, 2)
		w.ticks(1)
		repaired := w.started(fn, 2)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		w.ready(repaired[0]).expect("ticket 0001 at g:1")
	})
}
