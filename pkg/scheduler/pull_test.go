package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

func TestInstanceMustProveItself(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		good := func() *agentwire.Hello {
			return &agentwire.Hello{FunctionUid: string(fn.UID), Revision: fn.Revision(), Cid: string(spec.CID), Token: spec.Token}
		}
		tests := map[string]struct {
			change func(*agentwire.Hello)
			code   codes.Code
		}{
			"a wrong token":              {func(h *agentwire.Hello) { h.Token = "guess" }, codes.Unauthenticated},
			"no token":                   {func(h *agentwire.Hello) { h.Token = "" }, codes.Unauthenticated},
			"an instance that is none":   {func(h *agentwire.Hello) { h.Cid = "00000007-000002" }, codes.NotFound},
			"another function's":         {func(h *agentwire.Hello) { h.FunctionUid = "uid-g" }, codes.NotFound},
			"a function that is unknown": {func(h *agentwire.Hello) { h.FunctionUid = "uid-x" }, codes.Unavailable},
			"a function that is gone":    {func(h *agentwire.Hello) { h.FunctionUid = "uid-gone" }, codes.NotFound},
		}
		w.put("g")
		w.catalog.Remove(w.put("gone").Key())
		synctest.Wait()
		for name, tt := range tests {
			hello := good()
			tt.change(hello)
			a := w.connectHello(hello)
			t.Log(name)
			a.expectEnded(tt.code)
		}
		w.expectCounts(fn, provisioner.Counts{Creating: 1})
		w.hello(spec).expect()
	})
}

func TestOnlyAHelloOpensAStreamAndOnlyOne(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		stream, err := w.client.Pull(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{Credits: 1}}})
		if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a stream without a hello ended with %v", err)
		}
		a := w.ready(spec)
		a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{}}})
		a.expectEnded(codes.InvalidArgument)
	})
}

func TestTicketsGoToTheBestRankedInstance(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(3)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 3)
		third, second, first := w.ready(specs[2]), w.ready(specs[1]), w.ready(specs[0])
		g.offer(fn, 1, 2)
		first.expect("ticket 0001 at g:1")
		second.expect("ticket 0002 at g:1")
		first.pull(1, doneWith(1, time.Millisecond))
		g.offer(fn, 3)
		first.expect("ticket 0003 at g:1")
		second.expect()
		third.expect()
	})
}

func TestAgentGetsNoMoreThanItsConcurrency(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", concurrency(2), maxInstances(1)), w.gateway("g:1")
		g.offer(fn, 1, 2, 3, 4)
		a := w.hello(w.started(fn, 1)[0])
		a.pull(1_000_000)
		a.pull(1_000_000)
		a.expect("ticket 0001 at g:1", "ticket 0002 at g:1")
		a.pull(1_000_000, doneWith(1, 0), doneWith(99, 0), doneWith(4, 0))
		a.expect("ticket 0003 at g:1")
	})
}

// The stream's window holds 64 KiB and the scheduler some replies more. What an
// agent must not do is to let it wait.
func TestAgentThatTakesNoRepliesLosesItsStream(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		stream, err := w.client.Pull(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		requests := []*agentwire.PullRequest{
			{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{FunctionUid: string(fn.UID), Cid: string(spec.CID), Token: spec.Token}}},
			{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{Credits: 1}}},
		}
		for _, request := range requests {
			if err := stream.Send(request); err != nil {
				t.Fatal(err)
			}
		}
		sent := 0
		for ; sent < 100_000; sent++ {
			err := stream.Send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Leave{Leave: &agentwire.LeaveRequest{}}})
			if err != nil {
				break
			}
		}
		synctest.Wait()
		if sent == 100_000 {
			t.Error("the stream goes on")
		}
		w.expectCounts(fn, provisioner.Counts{Leaving: 1, Disconnected: 1})
	})
}

func TestInstanceMayLeaveUnlessItIsNeeded(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		b.askToLeave(time.Hour)
		b.expect("leave: false, ask again in 10m10s")

		fn = w.put("f") // the same generation, no least any more
		b.askToLeave(10 * time.Minute)
		b.expect("leave: false, ask again in 10s")
		b.askToLeave(10*time.Minute + 10*time.Second - time.Nanosecond)
		b.expect("leave: false, ask again in 100ms")
		b.askToLeave(10*time.Minute + 10*time.Second)
		b.expect("leave: true, ask again in 100ms")
		w.expectCounts(fn, provisioner.Counts{Created: 1, Leaving: 1})
		b.closeSend()
		w.expectCounts(fn, provisioner.Counts{Created: 1})

		a.askToLeave(30 * time.Minute)
		a.expect("leave: false, ask again in 30m0s")
		a.askToLeave(time.Hour)
		a.expect("leave: true, ask again in 100ms")
		a.closeSend()
		w.ticks(3)
		w.expectCounts(fn, provisioner.Counts{})
		w.started(fn, 0)
	})
}

func TestInstanceThatMayLeaveAndDoesNotIsStopped(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		w.put("f")
		a.askToLeave(time.Hour)
		a.expect("leave: true, ask again in 100ms")
		w.after(leaveGrace + 2*time.Second)
		w.expectCounts(fn, provisioner.Counts{})
		w.expectLog("an instance is gone", "lost=false", "it did not end in time")
	})
}

func TestLostInstancesTicketGoesOnAndOneReplacementComes(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		w.put("f") // no least any more: what comes now is a replacement
		g.offer(fn, 1)
		a.expect("ticket 0001 at g:1")
		a.die()
		b.expect("ticket 0001 at g:1")
		w.ticks(5)
		w.started(fn, 1)
		w.expectLog("launched instances", "ReplaceLost", "launched=1")
		w.expectLog("an instance is gone", "lost=true", "code=StartFailed", "killed")
	})
}

func TestGoodbyes(t *testing.T) {
	tests := map[string]struct {
		reason agentwire.Goodbye_Reason
		busy   bool
		// replaced says that another is launched though nothing waits.
		replaced bool
	}{
		"done":                               {agentwire.Goodbye_REASON_DONE, false, false},
		"done, with calls that go on":        {agentwire.Goodbye_REASON_DONE, true, false},
		"the function ended while idle":      {agentwire.Goodbye_REASON_FUNCTION_ENDED, false, false},
		"the function ended during a call":   {agentwire.Goodbye_REASON_FUNCTION_ENDED, true, true},
		"a call was broken":                  {agentwire.Goodbye_REASON_CALL_BROKEN, true, true},
		"stopped from outside while it runs": {agentwire.Goodbye_REASON_STOPPED, true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inHarness(t, defaults(), func(w *harness) {
				fn, g := w.put("f"), w.gateway("g:1")
				g.offer(fn, 1)
				a := w.ready(w.started(fn, 1)[0])
				a.expect("ticket 0001 at g:1")
				// From now on the call is claimed: it runs, and nothing waits.
				w.after(w.scheduler.shell.config.ClaimGrace)
				if !tt.busy {
					a.pull(1, doneWith(1, time.Millisecond))
				}
				a.goodbye(tt.reason, "why")
				w.expectCounts(fn, provisioner.Counts{Leaving: 1})
				w.ticks(3)
				w.started(fn, map[bool]int{true: 1}[tt.replaced])
				a.closeSend()
				if _, alive := w.runtime.alive[a.key]; alive {
					t.Error("the instance is not stopped")
				}
				broken := tt.reason == agentwire.Goodbye_REASON_FUNCTION_ENDED || tt.reason == agentwire.Goodbye_REASON_CALL_BROKEN
				w.expectLog("an instance is gone", fmt.Sprint("lost=", broken))
				happened, _ := w.scheduler.shell.lookup(string(fn.UID)).stats.events.since(0, time.Time{})
				code := map[agentwire.Goodbye_Reason]string{
					agentwire.Goodbye_REASON_FUNCTION_ENDED: v1alpha1.ReasonFunctionExited,
					agentwire.Goodbye_REASON_CALL_BROKEN:    v1alpha1.ReasonCallBroken,
				}[tt.reason]
				if broken && (len(happened) == 0 || happened[len(happened)-1].GetReason() != code) {
					t.Errorf("A3: operators are told %v, want %s", happened, code)
				}
			})
		})
	}
}

// A function in a container ends without its agent's seeing it.
func TestA3AnAgentIsToldHowItsFunctionEnded(t *testing.T) {
	for name, c := range map[string]struct{ code, reason, told, event string }{
		"it exited": {v1alpha1.ReasonFunctionExited, "the function exited with status 3",
			`ended: the function exited with status 3 ["last words"]`,
			"an instance was lost: the function exited with status 3; its last log lines:\nlast words"},
		"it used too much memory": {v1alpha1.ReasonOutOfMemory, "the function used more memory than its limit of 64Mi: raise spec.template.resources.limits.memory",
			`ended: the function was killed for the memory that it used ["last words"]`,
			"an instance was lost: the function used more memory than its limit of 64Mi: raise spec.template.resources.limits.memory; its last log lines:\nlast words"},
		"its node was lost": {v1alpha1.ReasonNodeLost, "the node n was lost", "", "an instance was lost: the node n was lost; its last log lines:\nlast words"},
	} {
		t.Run(name, func(t *testing.T) {
			inHarness(t, defaults(), func(w *harness) {
				fn, g := w.put("f"), w.gateway("g:1")
				g.offer(fn, 1)
				a := w.ready(w.started(fn, 1)[0])
				a.expect("ticket 0001 at g:1")
				w.runtime.fail(a.key, c.code, c.reason)
				if c.told == "" {
					a.expect()
				} else {
					a.expect(c.told)
				}
				happened, _ := w.scheduler.shell.lookup(string(fn.UID)).stats.events.since(0, time.Time{})
				if last := happened[len(happened)-1]; last.GetReason() != c.code || last.GetMessage() != c.event {
					t.Errorf("operators are told %v, want %q", last, c.event)
				}
			})
		})
	}
}

func TestA3AnEventHasTheNewestLines(t *testing.T) {
	long := strings.Repeat("x", 30)
	for name, c := range map[string]struct{ lines, want []string }{
		"none":              {nil, nil},
		"all that fit":      {[]string{"a", "b"}, []string{"a", "b"}},
		"the last that fit": {[]string{long, "a", "bc"}, []string{"a", "bc"}},
		"just as many":      {[]string{"a", strings.Repeat("b", 17)}, []string{"a", strings.Repeat("b", 17)}},
		"a part of one":     {[]string{"a", long}, []string{invocation.ExcerptOf(long, 20)}},
	} {
		if got := lastLines(c.lines, 20); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestUnclaimedTicketOfALeavingInstanceGoesOn(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a, b := w.ready(specs[0]), w.ready(specs[1])
		g.offer(fn, 1)
		a.expect("ticket 0001 at g:1")
		a.goodbye(agentwire.Goodbye_REASON_DONE, "")
		b.expect("ticket 0001 at g:1")
		// It must not be handed anything after its goodbye, whatever it asks.
		a.pull(1)
		a.askToLeave(time.Hour)
		g.offer(fn, 2)
		a.expect()
		if a.ended {
			t.Errorf("its stream ended with %v: it may still run calls", a.err)
		}
	})
}

// An instance that says goodbye may run calls; the connection that breaks
// meanwhile is no reason to kill them.
func TestBrokenConnectionOfALeavingInstanceKillsNoCall(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		spec := w.started(fn, 1)[0]
		a := w.ready(spec)
		w.after(w.scheduler.shell.config.ClaimGrace) // the call is claimed by now
		a.goodbye(agentwire.Goodbye_REASON_DONE, "")
		a.cut()
		again := w.hello(spec)
		again.expect("retire: it was draining already")
		w.after(time.Minute)
		if len(w.runtime.stopped) != 0 {
			t.Fatalf("stopped %v", w.runtime.stopped)
		}
		again.closeSend()
		w.expectLog("an instance is gone", "lost=false", string(spec.CID))
	})
}

func TestAgentThatComesBackGoesOn(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(1), maxInstances(1)), w.gateway("g:1")
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		a := w.ready(spec)
		a.cut()
		w.expectCounts(fn, provisioner.Counts{Leaving: 1, Disconnected: 1})
		b := w.ready(spec)
		w.expectCounts(fn, provisioner.Counts{Created: 1})
		w.after(time.Minute)
		g.offer(fn, 1)
		b.expect("ticket 0001 at g:1")
	})
}
