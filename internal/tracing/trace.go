package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Trace is the record of one scope.
type Trace struct {
	Scope Scope
	Spans []Span
}

// Span is a timed operation. Its number, and its parent's, are those of Scope.Span.
type Span struct {
	Number, Parent int
	Name           string
	Kind           trace.SpanKind
	Start, End     time.Time
	Attributes     []attribute.KeyValue
	Links          []trace.Link
	// Error says what went wrong; empty if nothing did.
	Error string
}

// plannedID is the key of the ids that a span is to have, in a context.
type plannedID struct{}

// planned hands out the ids that were planned.
type planned struct{}

// NewIDs implements sdktrace.IDGenerator.
func (planned) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	own, _ := ctx.Value(plannedID{}).(trace.SpanContext)
	return own.TraceID(), own.SpanID()
}

// NewSpanID implements sdktrace.IDGenerator.
func (planned) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	own, _ := ctx.Value(plannedID{}).(trace.SpanContext)
	return own.SpanID()
}

// replay makes OpenTelemetry's spans of a trace's.
func (r Trace) replay(tracer trace.Tracer) {
	for _, s := range r.Spans {
		own := spanContext(r.Scope.id, r.Scope.Span(s.Number))
		ctx := context.WithValue(context.Background(), plannedID{}, own)
		if s.Number != 0 {
			ctx = trace.ContextWithSpanContext(ctx, spanContext(r.Scope.id, r.Scope.Span(s.Parent)).WithTraceState(r.Scope.parent.TraceState()))
		} else if r.Scope.parent.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, r.Scope.parent)
		}
		_, span := tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Start), trace.WithSpanKind(s.Kind),
			trace.WithAttributes(s.Attributes...), trace.WithLinks(s.Links...))
		if s.Error != "" {
			span.SetStatus(codes.Error, s.Error)
		}
		span.End(trace.WithTimestamp(s.End))
	}
}
