package tracing

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/windlass-dev/windlass/internal/buildinfo"
)

const (
	// maxWaiting is how many traces wait to be sent; more are dropped.
	maxWaiting = 1024
	// maxBatch is how many spans are sent at once, but that no trace is divided,
	// and batchWithin how long a span waits for others to go with it.
	maxBatch    = 512
	batchWithin = time.Second
	// lastWithin is how long what still waits at the end may take to be sent.
	lastWithin = 3 * time.Second
)

// exporter sends spans to a collector.
type exporter interface {
	sdktrace.SpanExporter
	Start(ctx context.Context) error
}

// Deps are what a Tracer works with.
type Deps struct {
	// Service is the name of the program that records, and Instance tells it from
	// others of that name; it may be empty.
	Service, Instance string
	Registry          prometheus.Registerer
	Log               *slog.Logger
}

// Tracer records traces and sends them. A nil *Tracer records nothing.
type Tracer struct {
	config   Config
	log      *slog.Logger
	sampler  sdktrace.Sampler
	exporter exporter
	waiting  chan Trace
	spans    *prometheus.CounterVec

	// The rest is used by Run alone.
	provider *sdktrace.TracerProvider
	batch    batch
	failing  bool
}

// New makes a Tracer, or nil if nothing is to be recorded. It starts nothing.
func New(config Config, deps Deps) (*Tracer, error) {
	if err := config.Validate(); err != nil || config.Endpoint == "" {
		return nil, err
	}
	client := otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(config.Endpoint))
	if config.Protocol == ProtocolHTTP {
		client = otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(config.Endpoint))
	}
	return newTracer(config, deps, otlptrace.NewUnstarted(client))
}

func newTracer(config Config, deps Deps, to exporter) (*Tracer, error) {
	attributes := []attribute.KeyValue{semconv.ServiceName(deps.Service), semconv.ServiceVersion(buildinfo.Version)}
	if deps.Instance != "" {
		attributes = append(attributes, semconv.ServiceInstanceID(deps.Instance))
	}
	// What the environment says wins.
	who, err := resource.New(context.Background(),
		resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	t := &Tracer{
		config: config, log: deps.Log, exporter: to,
		sampler: sdktrace.ParentBased(sdktrace.TraceIDRatioBased(config.SampleRatio)),
		waiting: make(chan Trace, maxWaiting),
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windlass_traces_spans_total",
			Help: "Spans of traces, by whether they were exported, failed to be, or were dropped because too many waited.",
		}, []string{"result"}),
	}
	for _, result := range []string{exported, failed, dropped} {
		t.spans.WithLabelValues(result)
	}
	if err := deps.Registry.Register(t.spans); err != nil {
		return nil, err
	}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(&t.batch), sdktrace.WithIDGenerator(planned{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithResource(who))
	return t, nil
}

// Results of spans.
const (
	exported = "exported"
	failed   = "failed"
	dropped  = "dropped"
)

// Record takes a trace to be sent, or drops it if too many wait. It never waits.
func (t *Tracer) Record(r Trace) {
	if t == nil || !r.Scope.recorded {
		return
	}
	select {
	case t.waiting <- r:
	default:
		t.spans.WithLabelValues(dropped).Add(float64(len(r.Spans)))
	}
}

// Run sends what is recorded until ctx ends, and then what still waits.
func (t *Tracer) Run(ctx context.Context) error {
	if err := t.exporter.Start(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		t.gather(ctx)
		t.send(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWithin)
	defer cancel()
	for t.gatherRest(); len(t.batch.spans) > 0 && last.Err() == nil; t.gatherRest() {
		t.send(last)
	}
	_ = t.exporter.Shutdown(last)
	return nil
}

// gather waits for a trace, and for others that can go with it.
func (t *Tracer) gather(ctx context.Context) {
	var full <-chan time.Time
	for len(t.batch.spans) < maxBatch {
		select {
		case <-ctx.Done():
			return
		case <-full:
			return
		case r := <-t.waiting:
			if full == nil {
				full = time.After(batchWithin)
			}
			r.replay(t.provider.Tracer(scopeName))
		}
	}
}

// gatherRest takes what waits already.
func (t *Tracer) gatherRest() {
	for len(t.batch.spans) < maxBatch {
		select {
		case r := <-t.waiting:
			r.replay(t.provider.Tracer(scopeName))
		default:
			return
		}
	}
}

// scopeName is the instrumentation scope of all spans.
const scopeName = "github.com/windlass-dev/windlass"

// send exports the batch. What was interrupted by the end of ctx stays in it.
func (t *Tracer) send(ctx context.Context) {
	spans := t.batch.spans
	if len(spans) == 0 {
		return
	}
	err := t.exporter.ExportSpans(ctx, spans)
	if err != nil && ctx.Err() != nil && ctx.Err() != context.DeadlineExceeded {
		return
	}
	t.batch.spans = nil
	result := exported
	if err != nil {
		result = failed
	}
	t.spans.WithLabelValues(result).Add(float64(len(spans)))
	switch {
	case err != nil && !t.failing:
		t.log.Warn("traces cannot be exported", "endpoint", t.config.Endpoint, "err", err)
	case err == nil && t.failing:
		t.log.Info("traces are exported again", "endpoint", t.config.Endpoint)
	}
	t.failing = err != nil
}

// batch collects the spans that are made.
type batch struct{ spans []sdktrace.ReadOnlySpan }

// OnStart implements sdktrace.SpanProcessor.
func (*batch) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (b *batch) OnEnd(s sdktrace.ReadOnlySpan) { b.spans = append(b.spans, s) }

// Shutdown implements sdktrace.SpanProcessor.
func (*batch) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*batch) ForceFlush(context.Context) error { return nil }
