package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// collector is an exporter whose collector takes as long, and fails, as a test says.
type collector struct {
	takes time.Duration
	fails error
	spans []sdktrace.ReadOnlySpan
	shut  bool
}

func (c *collector) Start(context.Context) error { return nil }

func (c *collector) Shutdown(context.Context) error { c.shut = true; return nil }

func (c *collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(c.takes):
	}
	if c.fails == nil {
		c.spans = append(c.spans, spans...)
	}
	return c.fails
}

func tracerTo(t *testing.T, c *collector, ratio float64) *Tracer {
	t.Helper()
	config := DefaultConfig()
	config.Endpoint, config.SampleRatio, config.TrustClients = "http://collector:4317", ratio, true
	tracer, err := newTracer(config, Deps{
		Service: "windlass-test", Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// running runs a Tracer until the returned function is called.
func running(tracer *Tracer) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = tracer.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}

func (t *Tracer) count(result string) int {
	return int(testutil.ToFloat64(t.spans.WithLabelValues(result)))
}

func from(parent string) http.Header {
	h := http.Header{}
	if parent != "" {
		h.Set(HeaderParent, parent)
	}
	return h
}

func newID() invocation.ID { return invocation.NewID(time.Now()) }

func TestWhetherACallIsRecorded(t *testing.T) {
	sampled := "00-" + clientTrace + "-" + clientSpan + "-01"
	unsampled := "00-" + clientTrace + "-" + clientSpan + "-00"
	for name, tt := range map[string]struct {
		parent   string
		ratio    float64
		recorded bool
		follows  bool
	}{
		"nobody decided, and none is wanted":            {"", 0, false, false},
		"nobody decided, and all are wanted":            {"", 1, true, false},
		"the client records it":                         {sampled, 0, true, true},
		"the client does not":                           {unsampled, 1, false, true},
		"what the client sent is no trace":              {"00-" + clientTrace + "-01", 1, true, false},
		"what the client sent is of a later version":    {"cc" + sampled[2:] + "-what-is-new", 0, true, true},
		"the client's trace has the id that means none": {"00-" + strings.Repeat("0", 32) + "-" + clientSpan + "-01", 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			id := newID()
			s := tracerTo(t, &collector{}, tt.ratio).Begin(from(tt.parent), id)
			if s.Recorded() != tt.recorded || s.Follows() != tt.follows {
				t.Errorf("recorded %t, follows %t; want %t, %t", s.Recorded(), s.Follows(), tt.recorded, tt.follows)
			}
			want := ""
			switch {
			case tt.follows:
				want = clientTrace
			case tt.recorded:
				want = id.String()
			}
			if s.TraceID() != want {
				t.Errorf("the trace is %q, want %q", s.TraceID(), want)
			}
			if !tt.recorded && s.Wire() != nil {
				t.Errorf("it is told on the wire, and not recorded")
			}
		})
	}
}

func TestS18ClientsDecideNothingUnlessTheyAreTrusted(t *testing.T) {
	// The ratio, asked of this trace's own id, would take it.
	const lowest = "4bf92f3577b34da60000000000000001"
	for _, ratio := range []float64{0, 1e-9, 1} {
		for _, flags := range []string{"-00", "-01"} {
			tracer := tracerTo(t, &collector{}, ratio)
			tracer.config.TrustClients = false
			s := tracer.Begin(from("00-"+lowest+"-"+clientSpan+flags), newID())
			if s.Recorded() != (ratio == 1) || !s.Follows() || s.TraceID() != lowest {
				t.Errorf("ratio %v, flags %s: recorded %t, follows %t, trace %s", ratio, flags, s.Recorded(), s.Follows(), s.TraceID())
			}
		}
	}
}

func TestTheRatioIsKept(t *testing.T) {
	tracer, recorded := tracerTo(t, &collector{}, 0.25), 0
	const calls = 20_000
	for range calls {
		if tracer.Begin(http.Header{}, newID()).Recorded() {
			recorded++
		}
	}
	// Five standard deviations.
	if spread := 5 * math.Sqrt(calls*0.25*0.75); math.Abs(float64(recorded)-calls*0.25) > spread {
		t.Errorf("%d of %d calls are recorded with a ratio of 0.25", recorded, calls)
	}
}

func TestWithoutATracerNothingIsRecorded(t *testing.T) {
	var none *Tracer
	s := none.Begin(from("00-"+clientTrace+"-"+clientSpan+"-01"), newID())
	if s.Recorded() || s.TraceID() != clientTrace || s.Wire() != nil {
		t.Errorf("recorded %t, trace %q, wire %x", s.Recorded(), s.TraceID(), s.Wire())
	}
	none.Record(Trace{Scope: s, Spans: []Span{{}}})
	if none.BeginStart("uid", "cid", true).Recorded() {
		t.Error("a start is recorded")
	}
}

func TestACallThatIsNotRecordedAllocatesNothing(t *testing.T) {
	tracer, h, id := tracerTo(t, &collector{}, 0), http.Header{"Accept": {"*/*"}}, newID()
	var s Scope
	if n := testing.AllocsPerRun(100, func() { s = tracer.Begin(h, id) }); n > 0 || s.Recorded() {
		t.Errorf("%v allocations", n)
	}
}

func TestWhatIsSentToTheFunctionNamesItsSpan(t *testing.T) {
	s := tracerTo(t, &collector{}, 0).Begin(from("00-"+clientTrace+"-"+clientSpan+"-01"), newID())
	for n := range 3 {
		want := "00-" + clientTrace + "-" + s.Span(n).String() + "-01"
		if got := s.Parent(n); got != want || s.Span(n) == s.Span(n+1) {
			t.Errorf("the parent is %s, want %s", got, want)
		}
	}
	if of := FromWire(s.Wire()); !of.IsValid() || of.TraceID().String() != clientTrace || of.SpanID() != s.Span(0) || !of.IsSampled() {
		t.Errorf("on the wire it is %v", of)
	}
	for _, wrong := range [][]byte{nil, {1}, make([]byte, wireBytes), make([]byte, wireBytes+1)} {
		if FromWire(wrong).IsValid() {
			t.Errorf("%x was taken for a span", wrong)
		}
	}
}

func TestNoSpanHasTheIDThatMeansNone(t *testing.T) {
	s := Scope{base: math.MaxUint64 - 1}
	seen := map[trace.SpanID]bool{}
	for n := range 5 {
		id := s.Span(n)
		if !id.IsValid() || seen[id] {
			t.Errorf("span %d is %v", n, id)
		}
		seen[id] = true
	}
}

func TestAStartIsNamedByWhoKnowsTheInstance(t *testing.T) {
	tracer := tracerTo(t, &collector{}, 0)
	s := tracer.BeginStart("uid", "cid", true)
	if !s.Recorded() || tracer.BeginStart("uid", "cid", false).Recorded() {
		t.Error("a start is to be recorded if a recorded call waited for it")
	}
	if got, want := StartOf("uid", "cid").Context(), s.Context(); !got.Equal(want) || !got.IsValid() {
		t.Errorf("it is named %v, and is %v", got, want)
	}
	if s.TraceID() == StartOf("uid", "dic").Context().TraceID().String() {
		t.Error("two instances have one start")
	}
	if all := tracerTo(t, &collector{}, 1); !all.BeginStart("uid", "cid", false).Recorded() {
		t.Error("with a ratio of 1 a start is not recorded")
	}
}

// chain is a trace of n spans, each the parent of the next.
func chain(s Scope, n int) Trace {
	r, at := Trace{Scope: s}, time.Unix(1_000_000, 0)
	for i := range n {
		r.Spans = append(r.Spans, Span{
			Number: i, Parent: max(0, i-1), Name: fmt.Sprint("span ", i), Start: at, End: at.Add(time.Second),
		})
	}
	return r
}

func TestSpansAreSentAsTheyWereRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		tracer := tracerTo(t, c, 0)
		end := running(tracer)
		h := from("00-" + clientTrace + "-" + clientSpan + "-01")
		h.Set(HeaderState, "vendor=1")
		s := tracer.Begin(h, newID())
		r := chain(s, 3)
		r.Spans[2].Error = "it broke"
		tracer.Record(r)
		time.Sleep(2 * batchWithin)
		end()
		if len(c.spans) != 3 || !c.shut {
			t.Fatalf("%d spans were sent, shut down %t", len(c.spans), c.shut)
		}
		for i, got := range c.spans {
			parent := s.Span(max(0, i-1))
			if i == 0 {
				parent, _ = trace.SpanIDFromHex(clientSpan)
			}
			if got.SpanContext().TraceID().String() != clientTrace || got.SpanContext().SpanID() != s.Span(i) || got.Parent().SpanID() != parent {
				t.Errorf("span %d is %v below %v", i, got.SpanContext(), got.Parent())
			}
			if got.Parent().IsRemote() != (i == 0) || got.SpanContext().TraceState().String() != "vendor=1" {
				t.Errorf("span %d: parent remote %t, state %q", i, got.Parent().IsRemote(), got.SpanContext().TraceState())
			}
			if !got.StartTime().Equal(r.Spans[i].Start) || !got.EndTime().Equal(r.Spans[i].End) || got.Status().Description != r.Spans[i].Error {
				t.Errorf("span %d: %v to %v, %v", i, got.StartTime(), got.EndTime(), got.Status())
			}
		}
		if tracer.count(exported) != 3 {
			t.Errorf("%d spans are counted as exported", tracer.count(exported))
		}
	})
}

func TestNobodyWaitsForACollectorThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{takes: time.Hour}
		tracer := tracerTo(t, c, 1)
		end := running(tracer)
		began := time.Now()
		const traces = maxWaiting + 2*maxBatch + 10
		for range traces {
			tracer.Record(chain(tracer.Begin(http.Header{}, newID()), 2))
			synctest.Wait()
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the goroutine that recorded waited %v", waited)
		}
		if got := tracer.count(dropped); got == 0 || got >= 2*traces {
			t.Errorf("%d of %d spans were dropped", got, 2*traces)
		}
		end()
		if took := time.Since(began); took > lastWithin {
			t.Errorf("the end took %v", took)
		}
		if got := tracer.count(dropped) + tracer.count(failed) + tracer.count(exported); got != 2*traces {
			t.Errorf("%d of %d spans are accounted for", got, 2*traces)
		}
	})
}

func TestWhatWaitsAtTheEndIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{takes: time.Second}
		tracer := tracerTo(t, c, 1)
		end := running(tracer)
		for range maxBatch {
			tracer.Record(chain(tracer.Begin(http.Header{}, newID()), 2))
			synctest.Wait()
		}
		end()
		if len(c.spans) != 2*maxBatch || tracer.count(exported) != 2*maxBatch {
			t.Errorf("%d spans were sent, %d are counted", len(c.spans), tracer.count(exported))
		}
	})
}

func TestACollectorThatFailsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{fails: errors.New("no")}
		tracer := tracerTo(t, c, 1)
		end := running(tracer)
		tracer.Record(chain(tracer.Begin(http.Header{}, newID()), 2))
		time.Sleep(2 * batchWithin)
		synctest.Wait()
		c.fails = nil
		tracer.Record(chain(tracer.Begin(http.Header{}, newID()), 3))
		end()
		if tracer.count(failed) != 2 || tracer.count(exported) != 3 {
			t.Errorf("failed %d, exported %d; want 2, 3", tracer.count(failed), tracer.count(exported))
		}
	})
}

func TestConfigSaysWhichFlagIsWrong(t *testing.T) {
	for flag, change := range map[string]func(*Config){
		"":                       func(*Config) {},
		"--tracing-endpoint":     func(c *Config) { c.Endpoint = "collector:4317" },
		"--tracing-protocol":     func(c *Config) { c.Protocol = "thrift" },
		"--tracing-sample-ratio": func(c *Config) { c.SampleRatio = math.NaN() },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); flag == "" && err != nil || flag != "" && (err == nil || !strings.Contains(err.Error(), flag+" ")) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestWithoutAnEndpointThereIsNoTracer(t *testing.T) {
	if tracer, err := New(DefaultConfig(), Deps{}); tracer != nil || err != nil {
		t.Errorf("%v, %v", tracer, err)
	}
}
