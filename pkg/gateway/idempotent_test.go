package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// putIdempotent makes default/hello a function that may run twice.
func (w *harness) putIdempotent() {
	fn := w.put("default", "hello", time.Minute).DeepCopy()
	fn.Spec.Calls.Delivery = v1alpha1.DeliveryAtLeastOnce
	w.catalog.Put(rollout.Alone(fn))
}

func (w *harness) post(body string) <-chan answer {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.url+"/function/hello", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	return w.call(r)
}

func TestAnIdempotentCallIsTriedAgain(t *testing.T) {
	w := newHarness(t)
	w.putIdempotent()
	answers := w.post("x")
	w.take().die()
	w.take().fail(callwire.FailureFunctionLost, "it crashed")
	last := w.take()
	if last.granted.Attempt != 3 || string(last.granted.Body) != "x" {
		t.Errorf("the last attempt was granted %v", last.granted)
	}
	last.whole(200, "done")
	if a := receive(t, answers, "an answer"); a.status != 200 || a.body != "done" || a.header.Get(invocation.HeaderExecuted) != "yes" {
		t.Errorf("answered %+v", a)
	}
}

func TestAnIdempotentCallIsGivenUpInTheEnd(t *testing.T) {
	w := newHarness(t)
	w.putIdempotent()
	answers := w.post("x")
	for range 3 {
		w.take().die()
	}
	if a := receive(t, answers, "an answer"); a.status != 502 || a.header.Get(invocation.HeaderExecuted) != "maybe" {
		t.Errorf("answered %+v", a)
	}
}

// What may have run must not be said not to have.
func TestACallThatIsTriedAgainIsNeverSaidNotToHaveRun(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = time.Second })
	w.putIdempotent()
	answers := w.post("x")
	w.take().die()
	problem(t, wrote(t, answers, 502, invocation.ExecutedMaybe), "InstanceLost")
}

func TestM7ACallThatIsLostLateIsTriedAgain(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = wait })
	w.putIdempotent()
	answers := w.post("x")
	first := w.scheduler.ticket()
	i := w.claim(first)
	// It runs for longer than calls may wait.
	<-time.After(time.Duration(first.GetRemainingNs()))
	i.die()
	second := w.scheduler.ticket()
	if left := time.Duration(second.GetRemainingNs()); left > wait || left < wait-time.Second {
		t.Errorf("the retry may wait for %v", left)
	}
	i = w.claim(second)
	if i.granted.Attempt != 2 {
		t.Fatalf("the retry was granted %v, refused %v", i.granted, i.refused)
	}
	i.whole(200, "done")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

// What became of the retry does not hide that an instance had the call.
func TestM7ARetryThatIsRefusedIsALostCall(t *testing.T) {
	w := newHarness(t)
	w.putIdempotent()
	answers := w.post("x")
	w.take().fail(callwire.FailureFunctionLost, "it crashed")
	w.scheduler.refuse(&controlwire.Refusal{InvocationId: w.scheduler.ticket().GetInvocationId(), Reason: controlwire.Refusal_REASON_QUEUE_FULL})
	problem(t, wrote(t, answers, 502, invocation.ExecutedMaybe), "FunctionLost")
}

func TestOtherCallsAreNotTriedAgain(t *testing.T) {
	w := newHarness(t)
	answers := w.post("x")
	w.take().die()
	if a := receive(t, answers, "an answer"); a.status != 502 || a.header.Get(invocation.HeaderExecuted) != "maybe" {
		t.Errorf("answered %+v", a)
	}
}

func TestATicketMovesWithItsSlot(t *testing.T) {
	w := newHarness(t)
	answers := w.post("x")
	lost := w.scheduler.ticket()
	other := newFakeScheduler(t)
	w.router.routeTo(other.addr)
	again := other.ticket()
	if string(again.GetInvocationId()) != string(lost.GetInvocationId()) {
		t.Fatalf("the other scheduler was offered %x, want %x", again.GetInvocationId(), lost.GetInvocationId())
	}
	w.claim(again).whole(200, "done")
	if a := receive(t, answers, "an answer"); a.status != 200 {
		t.Errorf("answered %+v", a)
	}
	if i := w.claim(lost); i.refused == 0 {
		t.Error("the ticket at the first scheduler is still good")
	}
}

func TestACallIsCancelledWithItsClientIfTheFunctionWantsThat(t *testing.T) {
	w := newHarness(t)
	fn := w.put("default", "hello", time.Minute).DeepCopy()
	fn.Spec.Calls.OnClientDisconnect = v1alpha1.OnClientDisconnectCancel
	w.catalog.Put(rollout.Alone(fn))
	ctx, hangUp := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/function/hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	answers := w.call(r)
	i := w.take()
	hangUp()
	receive(t, answers, "the end of the call")
	i.cancelled()
}
