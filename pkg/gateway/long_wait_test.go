package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// waitsLong says that the call has waited for a core, or that it does not wait any more.
func (i *instance) waitsLong(waited time.Duration) {
	i.agent.write(func(b []byte) []byte { return callwire.AppendLongWait(b, i.number, waited) })
}

// node says whether the agent's node is busy, and waits until the gateway has heard it.
func (a *agent) node(busy bool) {
	a.write(func(b []byte) []byte { return callwire.AppendNode(b, busy) })
	a.ping()
}

// asked waits until the gateway asks for the call.
func (i *instance) asked() {
	i.t.Helper()
	if f, err := i.next(); err != nil || f.Kind != callwire.KindGiveUp {
		i.t.Fatalf("kind %d, %v came about a call that waits", f.Kind, err)
	}
}

// notAsked checks that the gateway has not asked for the call.
func (i *instance) notAsked() {
	i.t.Helper()
	i.agent.ping()
	select {
	case f := <-i.frames:
		i.t.Errorf("kind %d came about the call", f.Kind)
	default:
	}
}

// twoLenders are instances that have lent a pull each, the first one on a busy node.
func (w *harness) twoLenders() (busy, calm *agent) {
	w.Helper()
	answers := w.calls("x", "y")
	first, second := w.takeBy(firstCID), w.takeBy("00000001-000002")
	first.keep(200, "")
	second.keep(200, "")
	wrote(w.T, answers[0], 200, invocation.ExecutedYes)
	wrote(w.T, answers[1], 200, invocation.ExecutedYes)
	first.agent.node(true)
	return first.agent, second.agent
}

// asksForSlow lets the call /slow wait for a core at the busy node, and the gateway ask for it: a place of the calm one waits
// for it.
func (w *harness) asksForSlow(busy, calm *agent) (slow *instance, answers []<-chan answer) {
	w.Helper()
	w.calls("other")
	other := calm.byLoan().is("other")
	answers = w.calls("slow")
	slow = busy.byLoan().is("slow")
	slow.waitsLong(invocation.LongCoreWait)
	other.keep(200, "")
	slow.asked()
	return slow, answers
}

// A call waits for a core of a busy node. It goes to an instance of a calm node as soon as that has
// a place, runs once, and leaves its own place to the next call.
func TestACallThatWaitsLongGoesToACalmNode(t *testing.T) {
	for name, becomesFree := range map[string]func(other *instance){
		"which is idle": nil,
		"which gets idle": func(other *instance) {
			other.keep(200, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			busy, calm := w.twoLenders()
			w.calls("other")
			other := calm.byLoan().is("other")
			answers := w.calls("slow")
			slow := busy.byLoan().is("slow")
			if becomesFree == nil {
				other.keep(200, "")
				other.agent.ping()
			}
			slow.waitsLong(invocation.LongCoreWait)
			if becomesFree != nil {
				slow.notAsked()
				becomesFree(other)
			}
			slow.asked()
			w.calls("next") // the place is not for it
			slow.sendRelease(callwire.Release{Keeps: true, Reason: "it waits for a core"})
			again := calm.byLoan().is("slow")
			if again.granted.Attempt != 2 || again.granted.CoreWait <= 0 {
				t.Errorf("it came as attempt %d, and had waited for %v", again.granted.Attempt, again.granted.CoreWait)
			}
			busy.byLoan().is("next").keep(200, "")
			again.keep(200, "once")
			if a := wrote(t, answers[0], 200, invocation.ExecutedYes); a.body != "once" {
				t.Errorf("answered %q", a.body)
			}
			if n := w.metric("windlass_gateway_calls_given_up_total"); n != 1 {
				t.Errorf("%v calls were given up", n)
			}
		})
	}
}

// The gateway has the Release of a call, and has yet to queue it again. A new call does not get the
// credit that waits for the first one.
func TestANewCallDoesNotGetTheCreditOfOneThatWasGivenUp(t *testing.T) {
	w := newHarness(t)
	busy, calm := w.twoLenders()
	w.drop()
	w.calls("other")
	other := calm.byLoan().is("other")
	w.calls("slow")
	slow := busy.byLoan().is("slow")
	slow.waitsLong(invocation.LongCoreWait)
	other.keep(200, "")
	slow.asked()
	released, letGo := w.gateway.Hold("/slow")
	slow.sendRelease(callwire.Release{Keeps: true, Reason: "it waits for a core"})
	until(t, "the release has come", released)
	w.calls("next")
	select {
	case <-w.scheduler.offers: // it waits
	case i := <-calm.lent:
		t.Errorf("the call %s has the credit", i.granted.RequestURI)
	}
	letGo()
	calm.byLoan().is("slow").keep(200, "")
	busy.byLoan().is("next").keep(200, "")
}

// A call that was given up has its credit at once, and asks no scheduler.
func TestACallThatWasGivenUpSendsNoTicket(t *testing.T) {
	w := newHarness(t)
	busy, calm := w.twoLenders()
	slow, _ := w.asksForSlow(busy, calm)
	before := w.metric("windlass_gateway_tickets_offered_total")
	slow.sendRelease(callwire.Release{Keeps: true, Reason: "it waits for a core"})
	calm.byLoan().is("slow").keep(200, "")
	if n := w.metric("windlass_gateway_tickets_offered_total"); n != before {
		t.Errorf("%v tickets were offered, and %v before", n, before)
	}
}

// A call that has begun when it is asked for stays. Its answer counts, and the place is free.
func TestACallThatHasBegunIsNotGivenUp(t *testing.T) {
	w := newHarness(t)
	busy, calm := w.twoLenders()
	slow, answers := w.asksForSlow(busy, calm)
	slow.waitsLong(0)
	slow.notAsked()
	w.calls("next")
	calm.byLoan().is("next").keep(200, "")
	slow.keep(200, "here")
	if a := wrote(t, answers[0], 200, invocation.ExecutedYes); a.body != "here" {
		t.Errorf("answered %q", a.body)
	}
}

// A call whose body is not here whole cannot be sent again, and so is never asked for.
func TestACallWithALongBodyIsNotAskedFor(t *testing.T) {
	w := newHarness(t)
	busy, calm := w.twoLenders()
	w.calls("other")
	other := calm.byLoan().is("other")
	body := strings.Repeat("x", callwire.WholeBody+1)
	answers := w.call(w.request("POST", "/function/hello/slow", strings.NewReader(body)))
	slow := busy.byLoan().is("slow")
	slow.waitsLong(invocation.LongCoreWait)
	other.keep(200, "")
	other.agent.ping()
	for f, err := slow.next(); f.Kind != callwire.KindEnd; f, err = slow.next() {
		if err != nil || f.Kind == callwire.KindGiveUp {
			t.Fatalf("kind %d came, %v", f.Kind, err)
		}
		slow.agent.write(func(b []byte) []byte {
			return callwire.AppendCount(b, callwire.KindWindow, slow.number, uint32(len(f.Payload)))
		})
	}
	slow.keep(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

// A call waits for a core, and its client leaves before the gateway knows that it waits, or after. It
// does not run, although no other instance has a core for it.
func TestACallThatWaitsLongDoesNotRunOnceItsClientHasLeft(t *testing.T) {
	for name, early := range map[string]bool{"before it waits": true, "while it waits": false} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			busy, calm := w.twoLenders()
			w.calls("other")
			calm.byLoan().is("other")
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			answers := w.call(w.get("/function/hello/slow").WithContext(ctx))
			slow := busy.byLoan().is("slow")
			if early {
				leave()
				until(t, "the gateway knows", func() bool { return w.gateway.Answered("/slow") })
			}
			slow.waitsLong(invocation.LongCoreWait)
			if !early {
				slow.notAsked()
				leave()
			}
			slow.asked()
			slow.sendRelease(callwire.Release{Keeps: true, Reason: "it waits for a core"})
			until(t, "the call has ended", func() bool { return !w.gateway.Has("/slow") })
			receive(t, answers, "the client")
			w.calls("next")
			busy.byLoan().is("next").keep(200, "")
			if n := w.metric("windlass_gateway_calls_given_up_total"); n != 0 {
				t.Errorf("%v calls went to another instance", n)
			}
		})
	}
}

// The instance that has the call is gone before it gives it up: nobody knows whether it ran, as for
// every call by a loan. The place that was waiting for it goes to others.
func TestAnInstanceDiesThatShouldGiveUpACall(t *testing.T) {
	w := newHarness(t)
	busy, calm := w.twoLenders()
	slow, answers := w.asksForSlow(busy, calm)
	slow.die()
	wrote(t, answers[0], 502, invocation.ExecutedMaybe)
	w.calls("next")
	calm.byLoan().is("next").keep(200, "")
}

// A gateway that drains keeps no place for a call that has begun elsewhere, or whose instance is gone.
func TestADrainingGatewayReturnsWhatWaitedForACall(t *testing.T) {
	for name, end := range map[string]func(slow *instance){
		"which has begun":        func(slow *instance) { slow.waitsLong(0) },
		"whose instance is gone": func(slow *instance) { slow.die() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			busy, calm := w.twoLenders()
			slow, _ := w.asksForSlow(busy, calm)
			w.gateway.Drain()
			end(slow)
			if n := receive(t, calm.returned, "the place"); n != 1 {
				t.Errorf("%d places came back", n)
			}
		})
	}
}

// A call by a loan waits for a core until its time is over. Its client may try again, and the place is
// that of the next call.
func TestACallThatGetsNoCoreInItsTime(t *testing.T) {
	for name, with := range map[string]struct {
		body  int
		waits bool
	}{
		"whole":          {1, true},
		"long":           {callwire.WholeBody + 1, true},
		"of a few ms":    {1, false},
		"without a body": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			busy, calm := w.twoLenders()
			w.calls("other")
			calm.byLoan().is("other")
			answers := w.call(w.request("POST", "/function/hello/slow", strings.NewReader(strings.Repeat("x", with.body))))
			slow := busy.byLoan().is("slow")
			if with.waits {
				slow.waitsLong(invocation.LongCoreWait)
			}
			slow.agent.write(func(b []byte) []byte {
				end := callwire.End{Failure: callwire.FailureTooLate, Detail: "no core was free", Keeps: true}
				return end.Append(b, slow.number)
			})
			a := wrote(t, answers, 503, invocation.ExecutedNo)
			if p := problem(t, a, "NoInstanceInTime"); p["detail"] != "no core was free" {
				t.Errorf("said %v", p)
			}
			w.calls("next")
			busy.byLoan().is("next").keep(200, "")
		})
	}
}
