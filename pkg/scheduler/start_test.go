package scheduler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

func TestFunctionThatDoesNotStart(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2)
		first := w.started(fn, 1)[0]
		w.ticks(1)
		second := w.started(fn, 1)[0]

		// 1. As long as another one is under way, its calls wait.
		w.runtime.end(keyOf(string(fn.UID), first.CID), "exited with status 3")
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		// 2. When none is, they are told why.
		a := w.hello(second)
		a.goodbye(agentwire.Goodbye_REASON_START_FAILED, "nothing listens on port 4242")
		a.closeSend()
		r := g.expectRefused(controlwire.Refusal_REASON_CANNOT_START, 1, 2)
		for _, part := range []string{"nothing listens on port 4242", "last words"} {
			if !strings.Contains(r.GetDetail(), part) {
				t.Errorf("%q does not say %q", r.GetDetail(), part)
			}
		}
		w.expectLog("an instance did not start", "code=StartFailed", "nothing listens on port 4242")
		// 3. For a while, calls are refused at once.
		backoff := time.Duration(r.GetRetryAfterNs())
		if backoff != time.Second {
			t.Errorf("retry after %v, want 1s: both were launched before the first failure", backoff)
		}
		w.after(backoff - time.Millisecond)
		g.offer(fn, 3)
		if r := g.expectRefused(controlwire.Refusal_REASON_CANNOT_START, 3); r.GetRetryAfterNs() != int64(time.Millisecond) {
			t.Errorf("retry after %v, want what is left", time.Duration(r.GetRetryAfterNs()))
		}
		w.started(fn, 0)
		// 4. Then one is tried, however many wait.
		w.after(time.Millisecond)
		g.offer(fn, 4, 5, 6)
		probe := w.started(fn, 1)[0]
		w.ticks(2)
		w.started(fn, 0)
		// 5. Once it starts, all is as before.
		w.ready(probe).expect("ticket 0004 at g:1")
		w.ticks(2)
		w.started(fn, 2)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
	})
}

func TestChangeEndsTheBackoff(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.runtime.end(keyOf(string(fn.UID), w.started(fn, 1)[0].CID), "exited with status 3")
		g.expectRefused(controlwire.Refusal_REASON_CANNOT_START, 1)
		fn = w.put("f", revision(2))
		g.offer(fn, 2)
		w.started(fn, 1)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
	})
}

func TestCallsAreTakenThoughOneOfTheInstancesDoesNotStart(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a := w.ready(specs[0])
		w.runtime.end(keyOf(string(fn.UID), specs[1].CID), "exited with status 3")
		g.offer(fn, 1, 2)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		a.pull(1, doneWith(1, time.Millisecond))
		a.expect("ticket 0001 at g:1", "ticket 0002 at g:1")
	})
}

// An instance that has lost its stream comes back. Gateways offer each call again that waits.
func TestCallsWaitWhileTheirOnlyInstanceReconnects(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a := w.ready(specs[0])
		g.offer(fn, 1, 2)
		a.expect("ticket 0001 at g:1")
		a.cut()
		w.runtime.end(keyOf(string(fn.UID), specs[1].CID), "exited with status 3")
		g.offer(fn, 2, 3)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
	})
}

// One that was stopped for its silence does not come back.
func TestAStoppedInstanceThatHangsKeepsNoCallWaiting(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.runtime.deaf = true
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		a.expect("ticket 0001 at g:1")
		a.cut()
		w.after(15 * time.Second) // it is stopped, and does not end
		if got := w.value("agents_silent"); got != 1 {
			t.Errorf("%v silent agents, want 1", got)
		}
		g.offer(fn, 2)
		w.ticks(2)
		for _, s := range w.runtime.take() {
			w.runtime.end(keyOf(string(fn.UID), s.CID), "exited with status 3")
		}
		w.after(0)
		g.offer(fn, 3)
		w.after(0)
		g.expectRefused(controlwire.Refusal_REASON_CANNOT_START, 1, 2, 3)
	})
}

// Its caller would be answered while its ticket waits on. If the next start fails too, that refuses it.
func TestACallThatWaitsIsNotRefusedBetweenTwoStarts(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a := w.ready(specs[0])
		g.offer(fn, 1, 2)
		a.expect("ticket 0001 at g:1")
		w.runtime.end(keyOf(string(fn.UID), specs[1].CID), "exited with status 3")
		w.runtime.end(a.key, "out of memory")
		a.cut()
		g.offer(fn, 2, 3)
		g.expectRefused(controlwire.Refusal_REASON_CANNOT_START, 3)
		w.ticks(12)
		w.runtime.end(keyOf(string(fn.UID), w.started(fn, 1)[0].CID), "exited with status 3")
		g.expectRefused(controlwire.Refusal_REASON_CANNOT_START, 1, 2)
	})
}

// An instance that works ends no start back-off: only the next start does.
func TestAStartThatFailsBesideAnInstanceIsTriedAgain(t *testing.T) {
	for _, name := range autoscaler.Names() {
		t.Run(name, func(t *testing.T) {
			inHarness(t, defaults(), func(w *harness) {
				fn, g := w.put("f", decidedBy(name)), w.gateway("g:1")
				g.offer(fn, 1)
				a := w.ready(w.started(fn, 1)[0])
				a.expect("ticket 0001 at g:1")
				g.offer(fn, 2, 3)
				w.after(3 * time.Second)
				specs := w.runtime.take()
				if len(specs) == 0 {
					t.Fatal("none was started for the calls that wait")
				}
				for range 3 {
					for _, spec := range specs {
						w.runtime.fail(keyOf(string(fn.UID), spec.CID), v1alpha1.ReasonQuotaExceeded, "exceeded quota: team")
					}
					w.after(10 * time.Second)
					specs = w.started(fn, 1)
				}
				w.expectCounts(fn, provisioner.Counts{Created: 1, Creating: 1})
				w.ready(specs[0]).expect("ticket 0002 at g:1")
			})
		})
	}
}

func TestLeastInstancesAreTriedAgainByThemselves(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		for _, backoff := range []time.Duration{time.Second, 2 * time.Second} {
			w.runtime.end(keyOf(string(fn.UID), w.started(fn, 1)[0].CID), "exited with status 3")
			w.after(backoff - w.scheduler.shell.config.Tick)
			w.started(fn, 0)
			w.ticks(2)
		}
		w.ready(w.started(fn, 1)[0])
		w.expectCounts(fn, provisioner.Counts{Created: 1})
	})
}

func TestInstanceThatNeverConnectsIsAFailedStart(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.runtime.has(keyOf(string(fn.UID), w.started(fn, 1)[0].CID), time.Now(), time.Time{})
		w.after(20 * time.Second)
		r := g.expectRefused(controlwire.Refusal_REASON_CANNOT_START, 1)
		if !strings.Contains(r.GetDetail(), "did not connect in time") {
			t.Errorf("refused because %q", r.GetDetail())
		}
	})
}

// Its pod has no time for a call.
func TestAnInstanceThatAsksForWorkTooLateGetsNone(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.runtime.deaf = true
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		spec := w.started(fn, 1)[0]
		w.runtime.has(keyOf(string(fn.UID), spec.CID), time.Now(), time.Time{})
		a := w.hello(spec)
		w.after(17 * time.Second)
		if !slices.Contains(w.runtime.finished, a.key) {
			t.Fatal("it was not stopped as one without calls")
		}
		a.pull(1)
		a.expect("retire: it was not ready in time")
	})
}

// It has worked for hours, perhaps.
func TestAnInstanceThatComesBackHearsWhyItWasStopped(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.runtime.deaf = true
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		spec := w.started(fn, 1)[0]
		w.ready(spec).cut()
		w.after(15 * time.Second)
		a := w.hello(spec)
		a.pull(1)
		a.expect("retire: its agent was silent for too long")
	})
}

func TestFailureOfADeletedFunctionIsForgotten(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f")
		w.catalog.Remove(fn.Key())
		synctest.Wait()
		// Its start was launched before, and its end is heard of after.
		key := w.instances.LaunchOn(fn, invocation.Term{Epoch: 7}, 1, func() (string, bool) { return "n", true })[0]
		w.runtime.end(key, "exited with status 3")
		w.after(0)
		if w.instances.Observe(string(fn.UID)).Failing {
			t.Error("it is still known")
		}
		w.expectCounts(fn, provisioner.Counts{})
	})
}

func TestCallsAreRefusedIfNoNodeHasRoom(t *testing.T) {
	config := defaults()
	config.node = 100
	inHarness(t, config, func(w *harness) {
		busy, fn, g := w.put("busy"), w.put("f"), w.gateway("g:1")
		g.offer(busy, 1)
		a := w.ready(w.started(busy, 1)[0])
		g.offer(fn, 2)
		w.after(3 * time.Second)
		if n := w.scrape("function")["decisions_total{f,ns,NoRoom}"]; n != 31 {
			t.Errorf("%v decisions in 3 s found no room, want that of the first call and 30", n)
		}
		g.offer(fn, 3)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		w.after(2*time.Second - w.scheduler.shell.config.Tick)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		w.ticks(1)
		r := g.expectRefused(controlwire.Refusal_REASON_NO_CAPACITY, 2, 3)
		if !strings.Contains(r.GetDetail(), "1 node: 1 short of CPU (an instance requests 100m, a node has at most 0m free)") {
			t.Errorf("refused because %q", r.GetDetail())
		}
		if n := strings.Count(w.log.String(), "no node has room"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, w.log)
		}
		a.expect("ticket 0001 at g:1")
		w.started(fn, 0)
	})
}

func TestCallsWaitForRoomWhileTheirFunctionHasAnInstance(t *testing.T) {
	config := defaults()
	config.node = 100
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1, 2, 3)
		a := w.ready(w.started(fn, 1)[0])
		w.after(30 * time.Second)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		a.pull(1, doneWith(1, 30*time.Second))
		a.expect("ticket 0001 at g:1", "ticket 0002 at g:1")
	})
}

func TestM9CallersWaitWhileTheAPIIsAway(t *testing.T) {
	callersWait(t, v1alpha1.ReasonClusterUnavailable)
}

func TestCallersWaitWhereNodesHadNoRoomAnyMore(t *testing.T) {
	callersWait(t, v1alpha1.ReasonNodeFull)
}

// callersWait lets starts fail for a reason that is nobody's fault.
func callersWait(t *testing.T, reason string) {
	t.Helper()
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		for range 3 {
			for _, spec := range w.runtime.take() {
				w.runtime.fail(keyOf(string(fn.UID), spec.CID), reason, "connection refused")
			}
			w.after(8 * time.Second)
		}
		w.expectLog("an instance did not start", "code="+reason, "connection refused")
		g.offer(fn, 2)
		g.expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
		if news, _ := w.scheduler.shell.lookup(string(fn.UID)).stats.events.since(0, time.Time{}); len(news) != 0 {
			t.Errorf("the function is told %v", news)
		}
		// It is back: what waits is served by the next one.
		synctest.Wait()
		last := w.runtime.take()
		if len(last) == 0 {
			t.Fatal("nothing more was started")
		}
		w.ready(last[0]).expect("ticket 0001 at g:1")
	})
}
