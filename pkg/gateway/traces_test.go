package gateway_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/tracetest"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// newTracedHarness is newHarness with a collector of all traces. What was recorded is
// there when flush has returned.
func newTracedHarness(t *testing.T) (w *harness, c *tracetest.Collector, flush func()) {
	t.Helper()
	c, err := tracetest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	config := tracing.Config{Endpoint: c.URL(), Protocol: tracing.ProtocolGRPC, SampleRatio: 1}
	traces, err := tracing.New(config, tracing.Deps{Service: "gateway", Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- traces.Run(ctx) }()
	flush = func() {
		cancel()
		if err := receive(t, ended, "the end of the traces"); err != nil {
			t.Error(err)
		}
	}
	return newHarnessWith(t, func(_ *gateway.Config, deps *gateway.Deps) { deps.Traces = traces }), c, flush
}

// parentTold is the span that the function was told to be below.
func (i *instance) parentTold() string {
	for _, h := range i.granted.Header {
		if h.Name == "Traceparent" {
			return strings.Split(h.Value, "-")[2]
		}
	}
	return ""
}

func TestEveryAttemptIsTheParentOfItsOwnRun(t *testing.T) {
	w, c, flush := newTracedHarness(t)
	w.putIdempotent()
	answers := w.post("x")
	first := w.take()
	first.die()
	second := w.take()
	second.whole(200, "")
	got := wrote(t, answers, 200, invocation.ExecutedYes)
	flush()
	spans := c.Trace(got.header.Get(invocation.HeaderInvocationID))
	told := map[string]string{first.parentTold(): "InstanceLost", second.parentTold(): ""}
	if len(told) != 2 {
		t.Fatalf("both attempts were told of the span %v", told)
	}
	for _, s := range spans {
		if failure, ran := told[s.ID]; ran {
			delete(told, s.ID)
			if s.Name != "execute" || s.Error != failure {
				t.Errorf("the span of an attempt is %s, %q; want %q", s.Name, s.Error, failure)
			}
		}
	}
	if len(told) > 0 {
		t.Errorf("of %d spans none is that of %v", len(spans), told)
	}
}

func TestATicketNamesTheCallThatIsRecorded(t *testing.T) {
	w, c, flush := newTracedHarness(t)
	answers := w.call(w.get("/function/hello/"))
	ticket := w.scheduler.ticket()
	w.claim(ticket).whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	flush()
	named := tracing.FromWire(ticket.GetTrace())
	spans := c.Trace(named.TraceID().String())
	if len(spans) == 0 || spans[0].Name != "invoke default/hello" || spans[0].ID != named.SpanID().String() {
		t.Errorf("it names %v, and there are %+v", named, spans)
	}
}
