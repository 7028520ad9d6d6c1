package scheduler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// account is what is told of ns/f.
func (w *harness) account() decisionlog.Report {
	w.t.Helper()
	synctest.Wait()
	a, known := w.scheduler.reporter.Report(invocation.FunctionKey{Namespace: "ns", Name: "f"})
	if !known {
		w.t.Fatal("nothing is known of the function")
	}
	return a
}

// expectTold expects decisions that say all of words, one string for each.
func (w *harness) expectTold(a decisionlog.Report, words ...string) {
	w.t.Helper()
	if len(a.Decisions) != len(words) {
		w.t.Errorf("%d decisions are told of, want %d", len(a.Decisions), len(words))
	}
	for i, d := range a.Decisions {
		text := d.Summary + ": " + d.Why
		if i < len(words) {
			for _, word := range strings.Split(words[i], "|") {
				if !strings.Contains(text, word) {
					w.t.Errorf("decision %d is %q, which lacks %q", d.Number, text, word)
				}
			}
		}
	}
}

func TestWhatWasDecidedIsToldWithWhatBecameOfIt(t *testing.T) {
	config := defaults()
	config.node = 300
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		began := time.Now()
		if a := w.account(); !a.Served || len(a.Decisions) != 0 || a.Calls != 0 {
			t.Errorf("of a function that was never called is told: %+v", a)
		}
		g.offer(fn, 1, 2, 3, 4, 5)
		w.ticks(3)
		a := w.account()
		w.expectTold(a,
			"+1 instance (FirstInstance): |→ node n",
			"+2 of 4 instances (BurstBeforeFirst): |5 waiting|1 starting|→ node n (2); 2 not placed: 1 node: 1 short of CPU (an instance requests 100m, a node has at most 0m free)",
			"+0 of 2 instances (BurstBeforeFirst): |2 not placed: 1 node: 1 short of CPU",
		)
		if last, _ := a.Last(); last.Times != 2 || last.Until.Sub(last.At) != w.scheduler.shell.config.Tick || last.At.Before(began) {
			t.Errorf("the last was decided %d times from %v until %v", last.Times, last.At, last.Until)
		}
		if a.Calls != 5 || a.Instances != 0 || a.Problem != "" {
			t.Errorf("told: %+v", a)
		}
	})
}

func TestA10FunctionsThatCannotRunAreToldForAsLongAsThatIsSo(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		w.put("healthy")
		g.offer(fn, 1)
		w.runtime.end(keyOf(string(fn.UID), w.started(fn, 1)[0].CID), "exited with status 3")
		w.ticks(1)
		time.Sleep(10 * latestAge)
		synctest.Wait()
		want := []decisionlog.Broken{{Namespace: "ns", Name: "f", Revision: fn.Revision(), Reason: v1alpha1.ReasonStartFailed}}
		if got := w.scheduler.reporter.Latest(); !slices.Equal(got.Broken, want) || len(got.Functions) != 0 {
			t.Errorf("long after its last decision is told: %+v", got)
		}
	})
}

func TestWhatKeepsAFunctionFromStartingIsTold(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.runtime.end(keyOf(string(fn.UID), w.started(fn, 1)[0].CID), "exited with status 3")
		w.ticks(1)
		if a := w.account(); !strings.Contains(a.Problem, v1alpha1.ReasonStartFailed) {
			t.Errorf("the problem is %q", a.Problem)
		}
	})
}

func TestA3TheLastFailureIsToldUntilTheFunctionIsAnother(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		if last := w.account().LastFailure; last != nil {
			t.Errorf("before any: %+v", last)
		}
		a.goodbye(agentwire.Goodbye_REASON_FUNCTION_ENDED, "the function exited with status 3")
		a.closeSend()
		want := &decisionlog.Failure{At: time.Now().UTC(), Code: v1alpha1.ReasonFunctionExited, Detail: "the function exited with status 3; its last log lines:\nlast words"}
		if diff := cmp.Diff(want, w.account().LastFailure); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		// An instance that ends as it should is no failure, and more of them are the same function.
		w.ticks(1)
		fn = w.put("f", minInstances(1), maxInstances(3))
		g.offer(fn, 1)
		if w.account().LastFailure == nil {
			t.Error("it is forgotten, though it is the same program")
		}
		w.put("f", revision(2))
		if last := w.account().LastFailure; last != nil {
			t.Errorf("of another program: %+v", last)
		}
	})
}

func TestTheLastFailureIsOfThePresentTerm(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		a.goodbye(agentwire.Goodbye_REASON_FUNCTION_ENDED, "the function exited with status 3")
		a.closeSend()
		if w.account().LastFailure == nil {
			t.Fatal("the failure is not told")
		}
		w.ownership.lose("other:1")
		w.after(core.AuditEvery)
		w.ownership.own(true)
		w.after(core.AuditEvery)
		if last := w.account().LastFailure; last != nil {
			t.Errorf("of an earlier term: %+v", last)
		}
	})
}

func TestAnotherSchedulersFunctionIsTheOthersToTellOf(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.ticks(2)
		since := w.account().ServedSince
		if since.IsZero() || since.After(time.Now()) {
			t.Errorf("it is served since %v", since)
		}
		w.ownership.lose("other:1")
		if a := w.account(); a.Served || a.Owner != "other" || a.Scheduler != "self" || len(a.Decisions) != 0 {
			t.Errorf("told: %+v", a)
		}
	})
}

func TestADeletedFunctionsDecisionsAreForgotten(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.ticks(1)
		if n := len(w.scheduler.reporter.decisions.last(string(fn.UID), 10)); n == 0 {
			t.Fatal("nothing was kept")
		}
		w.catalog.Remove(fn.Key())
		w.ticks(1)
		if n := len(w.scheduler.reporter.decisions.last(string(fn.UID), 10)); n != 0 {
			t.Errorf("%d decisions are kept", n)
		}
		if _, known := w.scheduler.reporter.Report(fn.Key()); known {
			t.Error("it is still told of")
		}
	})
}

func TestWhatAsksForTheLeastInstancesIsTold(t *testing.T) {
	scheduled := func(fn *v1alpha1.Function) {
		fn.Spec.Scaling.Windows = []v1alpha1.ScalingWindow{
			{Start: "0 0 * * *", Duration: v1alpha1.Duration{Duration: 12 * time.Hour}, TimeZone: "UTC", MinInstances: 3},
		}
	}
	proving := func(fn *v1alpha1.Function) {
		metav1.SetMetaDataAnnotation(&fn.ObjectMeta, v1alpha1.AnnotationProving, "true")
	}
	for want, changes := range map[string][]func(*v1alpha1.Function){
		"+2 instances (BelowMin): |scaling.minInstances asks for at least 2|→ node n (2)": {minInstances(2)},
		"+3 instances (BelowMin): |scaling.windows asks for at least 3|→ node n (3)":      {minInstances(2), scheduled},
		"+1 instance (ProveRevision): |rollout.verify asks for at least 1|→ node n":       {minInstances(1), proving},
		"+3 instances (BelowMin): |scaling.windows asks for at least 3|→ node n (3) ":     {minInstances(1), proving, scheduled},
	} {
		inHarness(t, defaults(), func(w *harness) {
			w.put("f", changes...)
			w.ticks(1)
			w.expectTold(w.account(), strings.TrimSpace(want))
		})
	}
}

func TestCancelledLaunchesAreReported(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		c := &evaluation{
			unit:      w.scheduler.shell.lookup(string(w.put("f").UID)),
			Decided:   unwanted(2, autoscaler.ReasonSurplus),
			cancelled: []provisioner.Key{{CID: "1"}, {CID: "2"}},
		}
		c.Snapshot = autoscaler.Snapshot{Creating: 3, Room: -1}
		w.scheduler.reporter.decisions.addEntry(w.scheduler.ticker, c)
		w.expectTold(w.account(), "-2 instances (Surplus): |3 starting")
	})
}

func TestTheLastDecisionsOnAllFunctionsAreTold(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		told := func() (names []string) {
			synctest.Wait()
			latest := w.scheduler.reporter.Latest()
			if latest.Scheduler != "self" || latest.Functions == nil || latest.More != 0 {
				t.Errorf("told: %+v", latest)
			}
			for _, a := range latest.Functions {
				if len(a.Decisions) != 1 || !a.Served || a.Namespace != "ns" {
					t.Errorf("of %s is told: %+v", a.Name, a)
				}
				names = append(names, a.Name)
			}
			return names
		}
		expect := func(want ...string) {
			t.Helper()
			if got := told(); !slices.Equal(got, want) {
				t.Errorf("it is told of %q, want %q", got, want)
			}
		}
		w.put("idle")
		first, second, g := w.put("first"), w.put("second"), w.gateway("g:1")
		expect()
		g.offer(first, 1)
		w.ticks(3)
		expect("first")
		w.ready(w.started(first, 1)[0]).pull(1, doneWith(1, time.Millisecond))
		w.ticks(3)
		g.offerFor(second, 10*time.Minute, 2)
		w.ticks(3)
		expect("second", "first")
		w.after(latestAge)
		expect("second")
		w.ownership.lose("other:1")
		expect()
	})
}

// A decision that changes something lasts for one tick of 100 ms. People look once a second.
func TestALaunchIsReportedForAMinute(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		launched := func() int {
			synctest.Wait()
			latest := w.scheduler.reporter.Latest()
			if len(latest.Functions) != 1 || len(latest.Functions[0].Decisions) != 1 {
				t.Fatalf("told: %+v", latest)
			}
			return latest.Functions[0].Decisions[0].Launched
		}
		// One call runs and one waits, so there are decisions all the time.
		g.offerFor(fn, 10*time.Minute, 1, 2)
		w.ticks(3)
		w.ready(w.started(fn, 1)[0])
		w.after(latestAge / 2)
		account := w.account()
		if last, _ := account.Last(); last.Launched != 0 || launched() != 1 {
			t.Errorf("the last decision is %q, and the launch is not reported", last.Summary)
		}
		w.after(latestAge)
		if n := launched(); n != 0 {
			t.Errorf("a launch of %d is reported for more than a minute", n)
		}
	})
}

// What the cluster holds back looks like neither a bounded rate nor a failure of the function.
func TestWhatTheClusterHoldsBackIsSaid(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		key := keyOf(string(fn.UID), w.started(fn, 1)[0].CID)
		w.runtime.fail(key, v1alpha1.ReasonClusterUnavailable, "the Kubernetes API cannot be asked for the pod")
		w.ticks(2)
		w.started(fn, 0)
		w.expectTold(w.account(), "+1 instance", "+0 of 1 instance|1 held back for 1 s: the Kubernetes API cannot be asked for the pod")
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
	})
}
