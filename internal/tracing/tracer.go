package tracing

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
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
	"github.com/windlass-dev/windlass/internal/metric"
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

// Metrics declares the metrics of a program about its traces.
var Metrics metric.Set

var spans = Metrics.Counter(metric.Stable, "windlass_traces_spans_total",
	"Spans of traces, by whether they were exported, failed to export, or were dropped because too many waited.", "result")

// Results of spans.
const (
	exported = "exported"
	failed   = "failed"
	dropped  = "dropped"
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
	// Registry is nil for no metrics.
	Registry prometheus.Registerer
	Log      *slog.Logger
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

// New makes a Tracer, or nil if the configuration records nothing. It starts nothing.
func New(config Config, deps Deps) (*Tracer, error) {
	if err := config.Validate(); err != nil || config.Endpoint == "" {
		return nil, err
	}
	client := otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(config.Endpoint))
	if config.Protocol == ProtocolHTTP {
		client = otlptracehttp.NewClient(overHTTP(config.Endpoint)...)
	}
	return newTracer(config, deps, otlptrace.NewUnstarted(client))
}

// overHTTP is where a collector at an endpoint takes traces: where the URL says, or at
// the usual path if it says none.
func overHTTP(endpoint string) []otlptracehttp.Option {
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(endpoint)}
	if u, err := url.Parse(endpoint); err == nil && strings.Trim(u.Path, "/") == "" {
		options = append(options, otlptracehttp.WithURLPath("/v1/traces"))
	}
	return options
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
		spans:   spans.Vec(),
	}
	for _, result := range []string{exported, failed, dropped} {
		t.spans.WithLabelValues(result)
	}
	if deps.Registry != nil {
		deps.Registry.MustRegister(t.spans)
	}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(&t.batch), sdktrace.WithIDGenerator(planned{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithResource(who))
	return t, nil
}

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
