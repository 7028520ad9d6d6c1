package gateway_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// metric is the sum over all series of a counter or gauge whose labels include
// the given pairs; -1 if there is no such series.
func (w *harness) metric(name string, labels ...string) float64 {
	families, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	sum, found := 0.0, false
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			has := make(map[string]string)
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			matches := true
			for n := 0; n < len(labels); n += 2 {
				matches = matches && has[labels[n]] == labels[n+1]
			}
			if matches {
				found = true
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	if !found {
		return -1
	}
	return sum
}

// spent is the sum of a histogram over all series whose labels include the pair.
func (w *harness) spent(name, label, value string) (sum float64) {
	families, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					sum += m.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return sum
}

const (
	total    = "windlass_gateway_invocations_total"
	duration = "windlass_gateway_invocation_duration_seconds"
	inFlight = "windlass_gateway_invocations_in_flight"
)

func TestCallsAreCounted(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	i := w.take()
	if got := w.metric(inFlight, "function", "hello"); got != 1 {
		t.Errorf("%v in flight", got)
	}
	i.whole(201, "")
	wrote(t, answers, 201, invocation.ExecutedYes)
	answers = w.call(w.get("/function/hello/"))
	w.take().die()
	wrote(t, answers, 502, invocation.ExecutedMaybe)
	ctx, cancel := context.WithCancel(t.Context())
	answers = w.call(w.get("/function/hello/").WithContext(ctx))
	ticket := w.scheduler.ticket()
	cancel()
	receive(t, answers, "the end of the call")
	w.scheduler.cancelled(ticket)
	w.claim(ticket)
	wrote(t, w.call(w.get("/function/nobody/")), 404, invocation.ExecutedNo)

	until(t, "the last call is counted", func() bool { return w.metric(duration) == 3 })
	for _, tt := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, total, []string{"function_namespace", "default", "function", "hello", "code", "201", "executed", "yes"}},
		{1, total, []string{"code", "502", "executed", "maybe"}},
		{1, total, []string{"code", "499", "executed", "no"}},
		{3, total, nil},
		{0, inFlight, nil},
		{1, "windlass_gateway_claims_refused_total", nil},
		{3, "windlass_gateway_claims_total", nil},
		{1, "windlass_gateway_invocations_refused_total", []string{"function_namespace", "", "reason", "FunctionNotFound"}},
	} {
		if got := w.metric(tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s%v is %v, want %v", tt.name, tt.labels, got, tt.want)
		}
	}
	if first := w.metric("windlass_gateway_tickets_offered_total") - w.metric("windlass_gateway_tickets_reoffered_total"); first != 3 {
		t.Errorf("%v calls were offered, want 3", first)
	}
}

func TestWhatTheTimeOfCallsIsSpentOn(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	i := w.take()
	i.sendHead(callwire.Head{Status: 200, Whole: true, Cold: true, Exec: time.Microsecond, BegunAfter: 1})
	wrote(t, answers, 200, invocation.ExecutedYes)
	answers = w.call(w.get("/function/hello/"))
	i = w.take()
	i.head(200)
	i.body("x")
	i.sendEnd(callwire.End{Exec: math.MaxInt64})
	wrote(t, answers, 200, invocation.ExecutedYes)
	answers = w.call(w.get("/function/hello/"))
	w.take().die()
	wrote(t, answers, 502, invocation.ExecutedMaybe)
	refuseNext(w)

	until(t, "the last call is counted", func() bool { return w.metric(duration) == 4 })
	const perPhase, sums = "windlass_gateway_phase_duration_seconds", "windlass_gateway_phase_seconds_total"
	whole := w.spent(duration, "function", "hello")
	added := 0.0
	for phase, calls := range map[string]float64{"admit": 4, "queue": 4, "claim": 3, "execute": 3, "return": 2} {
		spent, sum := w.spent(perPhase, "phase", phase), w.metric(sums, "function", "hello", "phase", phase)
		if got := w.metric(perPhase, "phase", phase); got != calls || math.Abs(spent-sum) > 1e-9 {
			t.Errorf("%s: %v calls took %v s, and the function's %v s; want %v calls", phase, got, spent, sum, calls)
		}
		added += spent
	}
	if math.Abs(added-whole) > 1e-6 {
		t.Errorf("phases add up to %v s, calls took %v s", added, whole)
	}
	if got := w.metric("windlass_gateway_cold_invocations_total", "function", "hello"); got != 1 {
		t.Errorf("%v were the first of their instances", got)
	}
}

// A quantile is at most the last bound.
func TestDurationsOfLongCallsHaveBuckets(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	until(t, "the call is counted", func() bool { return w.metric(duration) == 1 })
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, family := range families {
		if name := family.GetName(); name == duration || name == "windlass_gateway_phase_duration_seconds" {
			buckets := family.GetMetric()[0].GetHistogram().GetBucket()
			if last := buckets[len(buckets)-1].GetUpperBound(); last != 3600 {
				t.Errorf("the last bound of %s is %v s", name, last)
			}
			checked++
		}
	}
	if checked != 2 {
		t.Errorf("%d histograms", checked)
	}
}

// refuseNext makes a call and has its scheduler refuse it.
func refuseNext(w *harness) {
	w.Helper()
	answers := w.call(w.get("/function/hello/"))
	ticket := w.scheduler.ticket()
	w.scheduler.refuse(&controlwire.Refusal{InvocationId: ticket.GetInvocationId(), Reason: controlwire.Refusal_REASON_QUEUE_FULL})
	wrote(w.T, answers, 429, invocation.ExecutedNo)
}

func TestWhatIsHeldIsTold(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxInvocations, c.MaxBodyMemory = 7, 4_000_000 })
	answers := w.call(w.request("POST", "/function/hello/", strings.NewReader("12345")))
	i := w.take()
	for name, want := range map[string]float64{
		"windlass_gateway_invocations_held":   1,
		"windlass_gateway_invocations_limit":  7,
		"windlass_gateway_bodies_held_bytes":  5,
		"windlass_gateway_bodies_limit_bytes": 4_000_000,
	} {
		if got := w.metric(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	i.whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	until(t, "nothing is held", func() bool { return w.metric("windlass_gateway_invocations_held") == 0 })
}

// A ticket that nobody claims is offered again, and that is not another call.
func TestTicketsThatAreOfferedAgainAreCounted(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	i := w.take()
	i.release("not now")
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	all, again := w.metric("windlass_gateway_tickets_offered_total"), w.metric("windlass_gateway_tickets_reoffered_total")
	if again < 1 || all != again+1 {
		t.Errorf("%v tickets were offered, %v of them again: want one more than again", all, again)
	}
}

// A function's series go with it, and a call that ends after it does not bring
// them back.
func TestTheSeriesOfADeletedFunctionAreDeleted(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	answers = w.call(w.get("/function/hello/"))
	i := w.take()
	w.catalog.Remove(invocation.FunctionKey{Namespace: "default", Name: "hello"})
	until(t, "the series are gone", func() bool { return w.metric(total) == -1 && w.metric(inFlight) == -1 })
	i.whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	for _, name := range []string{total, duration, inFlight, "windlass_gateway_phase_seconds_total", "windlass_gateway_cold_invocations_total"} {
		if got := w.metric(name); got != -1 {
			t.Errorf("%s is back: %v", name, got)
		}
	}
}

func TestAConfigSaysWhatIsWrongWithIt(t *testing.T) {
	if err := (gateway.Config{MaxBody: -1}).Validate(); err == nil {
		t.Fatal("valid")
	} else if got, want := err.Error(), "gateway: ClaimAddr must be set\n"+
		"gateway: MaxBody is -1: must not be negative\n"+
		"gateway: MaxInvocations is 0: must be at least 1\n"+
		"gateway: MaxBodyMemory is 0: must be at least 2097152, so that there is room for any one call\n"+
		"gateway: MaxQueueTime is 0s: must be positive\n"+
		"--log-calls \"\" is none of Failed, All and None\n"+
		"--problem-detail \"\" is neither All nor None"; got != want {
		t.Errorf("said %s", got)
	}
	config := gateway.DefaultConfig()
	config.ClaimAddr = "127.0.0.1:1"
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}
