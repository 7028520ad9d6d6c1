package scheduler

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// recorder keeps the traces that are recorded.
type recorder struct {
	*tracing.Tracer
	mu     sync.Mutex
	traces []tracing.Trace
}

// newRecorder records starts that recorded calls waited for, and no others.
func newRecorder(t *testing.T) *recorder {
	t.Helper()
	config := tracing.DefaultConfig()
	config.Endpoint, config.SampleRatio = "http://127.0.0.1:1", 0
	tracer, err := tracing.New(config, tracing.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return &recorder{Tracer: tracer}
}

func (r *recorder) Record(of tracing.Trace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traces = append(r.traces, of)
}

// take returns what was recorded since it was called last.
func (r *recorder) take() []tracing.Trace {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.traces
	r.traces = nil
	return all
}

// traceOf is what the ticket of a recorded call tells of its trace.
func traceOf(n int) []byte {
	wire := make([]byte, 24)
	wire[0], wire[15], wire[23] = 1, byte(n), byte(n)
	return wire
}

// offerRecorded offers tickets of calls that are recorded.
func (g *gateway) offerRecorded(fn *v1alpha1.Function, ids ...int) {
	g.t.Helper()
	request := &controlwire.OfferRequest{}
	for _, n := range ids {
		id := idOf(n)
		request.Offers = append(request.Offers, &agentwire.Ticket{
			InvocationId: id[:], FunctionUid: string(fn.UID), Token: id[:], RemainingNs: int64(time.Minute), Trace: traceOf(n),
		})
	}
	g.send(request)
	synctest.Wait()
}

// linked are the numbers of the calls that a start leads to.
func linked(t *testing.T, of tracing.Trace) map[int]string {
	t.Helper()
	all := map[int]string{}
	for _, link := range of.Spans[0].Links {
		id := link.SpanContext.TraceID()
		all[int(id[15])] = link.Attributes[0].Value.AsString()
	}
	return all
}

func inRecordedHarness(t *testing.T, body func(w *harness, r *recorder)) {
	t.Helper()
	r, config := newRecorder(t), defaults()
	config.traces = r
	inHarness(t, config, func(w *harness) { body(w, r) })
}

func TestAStartLeadsToTheCallsThatWaitedForIt(t *testing.T) {
	inRecordedHarness(t, func(w *harness, r *recorder) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		g.offerRecorded(fn, 1)
		g.offer(fn, 2)
		spec := w.started(fn, 1)[0]
		w.after(time.Second)
		g.offerRecorded(fn, 3) // too late to have been waited for
		w.ready(spec)
		traces := r.take()
		if len(traces) != 1 {
			t.Fatalf("%d starts were recorded", len(traces))
		}
		got := linked(t, traces[0])
		if len(got) != 1 || got[1] != "call that waited" {
			t.Errorf("it leads to the calls %v", got)
		}
		if whole := traces[0].Spans[0]; whole.Name != "start instance ns/f" || whole.End.Sub(whole.Start) != time.Second {
			t.Errorf("%s took %v", whole.Name, whole.End.Sub(whole.Start))
		}
		if !traces[0].Scope.Context().Equal(tracing.StartOf(string(fn.UID), spec.CID).Context()) {
			t.Error("the call that was served by it cannot name it")
		}
	})
}

func TestAStartLeadsToTheFirstCallThatItServed(t *testing.T) {
	inRecordedHarness(t, func(w *harness, r *recorder) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		g.offer(fn, 1)
		spec := w.started(fn, 1)[0]
		g.offerRecorded(fn, 2)
		g.cancel(fn, 1)
		w.ready(spec).expect("ticket 0002 at g:1")
		traces := r.take()
		if len(traces) != 1 {
			t.Fatalf("%d starts were recorded", len(traces))
		}
		if got := linked(t, traces[0]); len(got) != 1 || got[2] != "first call" {
			t.Errorf("it leads to the calls %v", got)
		}
	})
}

func TestAStartThatFailsIsRecordedAsThat(t *testing.T) {
	inRecordedHarness(t, func(w *harness, r *recorder) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		g.offerRecorded(fn, 1)
		spec := w.started(fn, 1)[0]
		w.after(time.Second)
		w.runtime.end(keyOf(string(fn.UID), spec.CID), "exited with status 3")
		g.expectRefused(controlwire.Refusal_REASON_CANNOT_START, 1)
		traces := r.take()
		if len(traces) != 1 || traces[0].Spans[0].Error == "" || len(linked(t, traces[0])) != 1 {
			t.Errorf("recorded %+v", traces)
		}
	})
}

func TestNobodyWantsAStartThatNoRecordedCallWaitedFor(t *testing.T) {
	inRecordedHarness(t, func(w *harness, r *recorder) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		w.ready(w.started(fn, 1)[0])
		if traces := r.take(); len(traces) > 0 {
			t.Errorf("recorded %+v", traces)
		}
	})
}

func TestTheCallsThatAreRememberedAreBounded(t *testing.T) {
	inRecordedHarness(t, func(w *harness, r *recorder) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		served := w.scheduler.shell.lookup(string(fn.UID))
		for n := 1; n <= 100; n++ {
			g.offerRecorded(fn, n)
		}
		if n := len(served.stats.waitingCalls); n != maxWaitingCalls {
			t.Errorf("%d calls are remembered", n)
		}
		// Those that do not wait any more make room.
		for n := 1; n <= 90; n++ {
			g.cancel(fn, n)
		}
		g.offerRecorded(fn, 101)
		if n := len(served.stats.waitingCalls); n != 1 {
			t.Errorf("%d calls are remembered although the others left", n)
		}
	})
}

func TestSpansOfAStart(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	of := startRecord{
		key: keyOf("uid", invocation.CID("cid")), fn: newTestFunction("f"), node: "n",
		moments: coldstart.Moments{Wanted: at(0), Launched: at(10), Created: at(30), Began: at(60), Ready: at(100), Hello: at(90), Served: at(101)},
		waited:  []trace.SpanContext{tracing.FromWire(traceOf(1))}, served: tracing.FromWire(traceOf(1)),
	}
	spans := of.spans()
	want := []struct {
		name     string
		from, to int
	}{{"start instance ns/f", 0, 101}, {"decide", 0, 10}, {"create", 10, 30}, {"containers", 30, 60}, {"ready", 60, 100}, {"claim", 100, 101}}
	if len(spans) != len(want) {
		t.Fatalf("%d spans: %+v", len(spans), spans)
	}
	for i, w := range want {
		if s := spans[i]; s.Name != w.name || !s.Start.Equal(at(w.from)) || !s.End.Equal(at(w.to)) || s.Parent != 0 {
			t.Errorf("span %d is %s from %v to %v, want %v", i, s.Name, s.Start.Sub(noon), s.End.Sub(noon), w)
		}
	}
	if n := len(spans[0].Links); n != 1 {
		t.Errorf("a call that waited and was served first is linked %d times", n)
	}
}
