package scheduler

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

func callLimit(l v1alpha1.Calls) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) { fn.Spec.Calls = l }
}

func TestCallsBeyondTheConcurrencyAreRefused(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", callLimit(v1alpha1.Calls{MaxInFlight: 2})), w.gateway("g:1")
		g.offer(fn, 1, 2, 3)
		g.expectRefused(controlwire.Refusal_REASON_CONCURRENCY_LIMITED, 3)
		a := w.ready(w.started(fn, 1)[0])
		a.expect("ticket 0001 at g:1")
		g.offer(fn, 1, 2, 4) // two of them again, as gateways do
		g.expectRefused(controlwire.Refusal_REASON_CONCURRENCY_LIMITED, 4)
		a.pull(1, doneWith(1, time.Millisecond))
		g.offer(fn, 5, 6)
		g.expectRefused(controlwire.Refusal_REASON_CONCURRENCY_LIMITED, 6)
		if got := w.scrape("function")["invocations_refused_total{f,ns,ConcurrencyLimited}"]; got != 3 {
			t.Errorf("%v refusals were counted, want 3", got)
		}
	})
}

// Each look at the clock finds it later, as it is outside of tests.
func TestLimitsHoldThoughTheClockGoesOn(t *testing.T) {
	w, functions := benchHarness(t, 1, callLimit(v1alpha1.Calls{MaxInFlight: 1}))
	w.register(functions)
	now := time.Now()
	w.scheduler.shell.deps.Now = func() time.Time {
		now = now.Add(time.Nanosecond)
		return now
	}
	g := &offerStream{gateway: "g:1", refusals: make(chan *controlwire.Refusal, 2)}
	for n := range 2 {
		id := idOf(n)
		w.scheduler.offers.offer(g, &agentwire.Ticket{InvocationId: id[:], FunctionUid: string(functions[0].UID), RemainingNs: int64(time.Minute)})
	}
	if len(g.refusals) != 1 || (<-g.refusals).GetReason() != controlwire.Refusal_REASON_CONCURRENCY_LIMITED {
		t.Error("the second call was let in, where only one may be")
	}
}

// A gateway that has loans sends the first ticket of a call late.
func TestATicketThatComesLateForTheFirstTimeIsACall(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", callLimit(v1alpha1.Calls{MaxInFlight: 1})), w.gateway("g:1")
		g.offer(fn, 1)
		id := idOf(2)
		g.send(&controlwire.OfferRequest{Offers: []*agentwire.Ticket{{
			InvocationId: id[:], FunctionUid: string(fn.UID), WaitedNs: int64(100 * time.Millisecond), RemainingNs: int64(time.Minute),
		}}})
		g.expectRefused(controlwire.Refusal_REASON_CONCURRENCY_LIMITED, 2)
	})
}

func TestCallsBeyondTheRateAreRefused(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", callLimit(v1alpha1.Calls{Rate: v1alpha1.Rate{Requests: 2, Burst: 4}})), w.gateway("g:1")
		g.offer(fn, 1, 2, 3)
		g.expectRefused(controlwire.Refusal_REASON_RATE_LIMITED, 3)
		g.offer(fn, 1, 2, 1, 2)
		g.expectRefused(controlwire.Refusal_REASON_RATE_LIMITED)
		w.after(time.Second)
		g.offer(fn, 4, 5, 6)
		g.expectRefused(controlwire.Refusal_REASON_RATE_LIMITED, 6)
		fn = w.put("f") // without limits
		g.offer(fn, 7, 8, 9)
		g.expectRefused(controlwire.Refusal_REASON_RATE_LIMITED)
	})
}

func TestCallThatWouldWaitTooLongIsRefusedOnceTheFunctionCannotGrow(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		g.offer(fn, 1, 2, 3, 4) // nothing is known: all wait
		a := w.ready(w.started(fn, 1)[0])
		a.pull(1, doneWith(1, 4*time.Second))
		w.ticks(1)
		g.offerFor(fn, 7*time.Second, 5) // 2 wait, 8s
		r := g.expectRefused(controlwire.Refusal_REASON_WAIT_TOO_LONG, 5)
		if after := time.Duration(r.GetRetryAfterNs()); after < 6400*time.Millisecond || after > 9600*time.Millisecond {
			t.Errorf("retry after %v, want about 8s", after)
		}
		g.offerFor(fn, 9*time.Second, 6)
		g.expectRefused(controlwire.Refusal_REASON_WAIT_TOO_LONG)
		fn = w.put("f", maxInstances(50))
		w.ticks(1)
		g.offerFor(fn, time.Second, 7)
		g.expectRefused(controlwire.Refusal_REASON_WAIT_TOO_LONG)
	})
}

// An agent says how long a call took. Whatever it says, it is held within what its
// function may take.
func TestWhatAnAgentSaysOfTimesIsHeldWithinBounds(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		g.offer(fn, 1, 2)
		a := w.ready(w.started(fn, 1)[0])
		a.pull(1, doneWith(1, 1<<62), doneWith(1, -5))
		if got := w.scheduler.shell.lookup("uid-f").means().Execution; got != fn.Spec.Template.Timeout.Duration {
			t.Errorf("the mean is %v, want the timeout", got)
		}
	})
}

func TestTicketOfAGatewayThatAnInstanceCannotReachGoesToAnother(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, cut, fine := w.put("f", minInstances(2)), w.gateway("cut:1"), w.gateway("fine:1")
		w.ticks(1)
		specs := w.started(fn, 2)
		a := w.ready(specs[0])
		cut.offer(fn, 1)
		a.expect("ticket 0001 at cut:1")
		unclaimed := doneWith(1, 0)
		unclaimed.Unclaimed = true
		a.pull(1, unclaimed)
		a.expect()
		fine.offer(fn, 2)
		a.expect("ticket 0002 at fine:1")
		w.ready(specs[1]).expect("ticket 0001 at cut:1")
		a.pull(1, doneWith(2, time.Millisecond))
		cut.offer(fn, 3)
		a.expect()
		w.after(core.GatewayCoolDown)
		a.expect("ticket 0003 at cut:1")
	})
}

func TestARateMayBeOfALongerPeriod(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		limit := v1alpha1.Rate{Requests: 2, Period: v1alpha1.Duration{Duration: 10 * time.Second}, Burst: 4}
		fn, g := w.put("f", callLimit(v1alpha1.Calls{Rate: limit})), w.gateway("g:1")
		g.offer(fn, 1, 2, 3) // a bucket starts half full
		g.expectRefused(controlwire.Refusal_REASON_RATE_LIMITED, 3)
		w.after(4 * time.Second)
		g.offer(fn, 4)
		g.expectRefused(controlwire.Refusal_REASON_RATE_LIMITED, 4)
		w.after(2 * time.Second)
		g.offer(fn, 5)
		g.expectRefused(controlwire.Refusal_REASON_RATE_LIMITED)
	})
}

// What an owner before has let in is not refused by the next one.
func TestTicketsThatAreOfferedAgainAfterATakeOverAreLetIn(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", callLimit(v1alpha1.Calls{MaxInFlight: 1, Rate: v1alpha1.Rate{Requests: 1}})), w.gateway("g:1")
		request := &controlwire.OfferRequest{}
		for n := range 5 {
			id := idOf(n)
			request.Offers = append(request.Offers, &agentwire.Ticket{
				InvocationId: id[:], FunctionUid: string(fn.UID), WaitedNs: int64(time.Millisecond), RemainingNs: int64(time.Minute), Again: true,
			})
		}
		g.send(request)
		g.expectRefused(controlwire.Refusal_REASON_RATE_LIMITED)
		g.offer(fn, 9)
		g.expectRefused(controlwire.Refusal_REASON_CONCURRENCY_LIMITED, 9)
	})
}
