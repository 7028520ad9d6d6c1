package gateway

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/tracing"
)

// Attributes of spans that OpenTelemetry has no words for.
const (
	attributeCID      = "windlass.cid"
	attributeAttempt  = "windlass.attempt"
	attributeExecuted = "windlass.executed"
	attributeLink     = "windlass.link"
)

// The span of a call has the number 0, and that of the n-th attempt's execution, which
// the function is told of before it has begun, n. The others are counted from here.
const otherSpans = 1 << 20

// told is what is known of a call that has ended.
type told struct {
	invoke.Account
	uid, method string
	scope       tracing.Scope
	times       timeline.Timeline
	// tries are the attempts before the last one.
	tries []try
}

// trace is what is recorded of the call: one span from its receipt to its end, and
// below it its stages, which follow each other without a gap. A call that was tried
// again has queued and run several times in what is its stage queue.
func (t told) trace() tracing.Trace {
	spans := []tracing.Span{t.whole()}
	add := func(s tracing.Span) {
		if s.Number == 0 {
			s.Number = otherSpans + len(spans)
		}
		spans = append(spans, s)
	}
	for stage, span := range t.times.All() {
		s := tracing.Span{Name: stage.String(), Kind: trace.SpanKindInternal, Start: span.From, End: span.To}
		switch stage {
		case timeline.Queue:
			for _, earlier := range t.tries {
				at := within(earlier.from, s.Start, span.To)
				add(tracing.Span{Name: s.Name, Kind: s.Kind, Start: s.Start, End: at})
				s.Start = within(earlier.until, at, span.To)
				add(earlier.span(at, s.Start))
			}
		case timeline.Execute:
			s.Number, s.Kind = t.Attempt, trace.SpanKindClient
			s.Attributes = attemptAttributes(t.CID, t.Attempt)
			s.Error = t.failure()
		case timeline.Claim:
			s.Attributes = attemptAttributes(t.CID, t.Attempt)
		}
		add(s)
	}
	return tracing.Trace{Scope: t.scope, Spans: spans}
}

// span is that of an attempt which did not end the call.
func (e try) span(from, until time.Time) tracing.Span {
	s := tracing.Span{
		Name: timeline.Claim.String(), Kind: trace.SpanKindInternal, Start: from, End: until,
		Attributes: attemptAttributes(e.cid, e.number), Error: e.why,
	}
	if e.ran {
		s.Name, s.Kind, s.Number = timeline.Execute.String(), trace.SpanKindClient, e.number
	}
	return s
}

// whole is the span of the whole call. One that was the first of its instance leads to
// the instance's start.
func (t told) whole() tracing.Span {
	name := t.Function.String()
	s := tracing.Span{
		Name: "invoke " + name, Kind: trace.SpanKindServer, Start: t.Received, End: t.Ended, Error: t.failure(),
		Attributes: []attribute.KeyValue{
			semconv.HTTPRequestMethodKey.String(t.method), semconv.HTTPRoute("/function/" + name),
			semconv.FaaSName(name), semconv.FaaSTriggerHTTP, semconv.FaaSInvocationID(t.ID.String()),
			semconv.FaaSColdstart(t.Cold), attribute.String(attributeExecuted, string(t.Executed)),
			semconv.HTTPResponseStatusCode(t.Code),
		},
	}
	if t.Attempt > 0 {
		s.Attributes = append(s.Attributes, attemptAttributes(t.CID, t.Attempt)...)
	}
	if t.Reason != "" {
		s.Attributes = append(s.Attributes, semconv.ErrorTypeKey.String(t.Reason))
	}
	if t.Cold {
		start := tracing.StartOf(t.uid, t.CID).Context()
		s.Links = []trace.Link{{SpanContext: start, Attributes: []attribute.KeyValue{attribute.String(attributeLink, "start of the instance")}}}
	}
	return s
}

// failure is what a span says that failed with the call: its reason, or that the
// function answered with an error of its own. What a client did wrong is no failure.
func (t told) failure() string {
	switch {
	case t.Code == codeLeft:
		return "the client left"
	case t.Code < 500:
		return ""
	case t.Reason != "":
		return t.Reason
	}
	return "the function answered with an error"
}

func attemptAttributes(cid invoke.CID, number int) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(attributeCID, string(cid)), attribute.Int(attributeAttempt, number)}
}

// within is at, but not before from and not after to.
func within(at, from, to time.Time) time.Time {
	switch {
	case at.Before(from):
		return from
	case at.After(to):
		return to
	}
	return at
}

// inTrace makes the span of an attempt's execution the parent of what the function
// does, if the call is recorded; what a client sent otherwise is the function's. A
// state that belongs to no trace is left out.
func (c *call) inTrace(headers []*wirev1.Header, attempt int) []*wirev1.Header {
	if !c.scope.Recorded() {
		return headers
	}
	headers = slices.DeleteFunc(headers, func(h *wirev1.Header) bool {
		return h.GetName() == tracing.HeaderParent || h.GetName() == tracing.HeaderState && !c.scope.Follows()
	})
	return append(headers, &wirev1.Header{Name: tracing.HeaderParent, Value: []byte(c.scope.Parent(attempt))})
}
