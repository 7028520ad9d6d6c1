package tracetest

import (
	"context"
	"encoding/hex"
	"net"
	"slices"
	"sync"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector keeps the spans that it is sent.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer
	server *grpc.Server
	url    string
	// forgets says that it keeps nothing.
	forgets bool

	mu    sync.Mutex
	spans []Span
}

// Span is a span as it was sent. Ids are in hexadecimal digits; Parent is empty if it
// has none.
type Span struct {
	Service            string
	Trace, ID, Parent  string
	Name, State, Error string
	Kind               tracev1.Span_SpanKind
	Start, End         time.Time
	Attributes         map[string]*commonv1.AnyValue
	Links              []Link
}

// Link names a span.
type Link struct{ Trace, Span string }

// Duration is how long it took.
func (s Span) Duration() time.Duration { return s.End.Sub(s.Start) }

// Text is an attribute that is a string; empty if there is none.
func (s Span) Text(name string) string { return s.Attributes[name].GetStringValue() }

// Start starts a Collector on a free port of 127.0.0.1.
func Start() (*Collector, error) { return start(&Collector{}) }

// StartSink starts a Collector that keeps nothing.
func StartSink() (*Collector, error) { return start(&Collector{forgets: true}) }

func start(c *Collector) (*Collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.server, c.url = grpc.NewServer(grpc.WaitForHandlers(true)), "http://"+listener.Addr().String()
	collectorv1.RegisterTraceServiceServer(c.server, c)
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// URL is where it takes spans.
func (c *Collector) URL() string { return c.url }

// Stop ends it.
func (c *Collector) Stop() { c.server.Stop() }

// Spans are all that were sent so far, the earliest first.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	spans := slices.Clone(c.spans)
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return spans
}

// Trace are the spans of one trace.
func (c *Collector) Trace(id string) []Span {
	return slices.DeleteFunc(c.Spans(), func(s Span) bool { return s.Trace != id })
}

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	if c.forgets {
		return &collectorv1.ExportTraceServiceResponse{}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		service := attributes(resource.GetResource().GetAttributes())["service.name"].GetStringValue()
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(service, span))
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func spanOf(service string, s *tracev1.Span) Span {
	span := Span{
		Service: service, Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(), State: s.GetTraceState(), Kind: s.GetKind(),
		Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
		Attributes: attributes(s.GetAttributes()),
	}
	if s.GetStatus().GetCode() == tracev1.Status_STATUS_CODE_ERROR {
		span.Error = s.GetStatus().GetMessage()
	}
	for _, l := range s.GetLinks() {
		span.Links = append(span.Links, Link{Trace: hex.EncodeToString(l.GetTraceId()), Span: hex.EncodeToString(l.GetSpanId())})
	}
	return span
}

func attributes(list []*commonv1.KeyValue) map[string]*commonv1.AnyValue {
	all := make(map[string]*commonv1.AnyValue, len(list))
	for _, a := range list {
		all[a.GetKey()] = a.GetValue()
	}
	return all
}
