package gateway

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// recordCall logs a call that has ended, records its trace, and adds it to the call log.
func (g *Gateway) recordCall(c *call, end *callEnd) {
	recorded := c.scope.Recorded()
	logged := g.config.LogCalls.wants(end.failed, recorded)
	if !logged && !recorded && g.deps.CallLog == nil {
		return
	}
	t := c.toRecord(end)
	if logged {
		level := slog.LevelInfo
		if end.failed {
			level = slog.LevelWarn
		}
		g.deps.Log.LogAttrs(context.Background(), level, "call ended", logAttrs(t.Record)...)
	}
	if recorded {
		g.deps.Traces.Record(t.trace())
	}
	if g.deps.CallLog != nil {
		g.deps.CallLog.Add(t.Record)
	}
}

// toRecord is everything that is known of a call that has ended.
func (c *call) toRecord(end *callEnd) callRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := callRecord{
		Record: invocation.Record{
			ID: c.id, Function: c.function.Key(), Revision: c.to.unit.FunctionRevisionName(), Trace: c.scope.TraceID(), Code: end.code, Executed: end.executed, Reason: c.reason,
			Broken: end.cut != "", Cold: end.cold, Received: end.times.Received(),
		},
		uid: string(c.to.unit.UID), version: end.revision, method: c.client.request.Method, scope: c.scope, times: end.times, earlier: c.earlier,
	}
	if c.attempt != nil {
		t.CID, t.Attempt, t.Claimed = c.attempt.conn.cid, c.attempt.number, c.attempt.claimed
	}
	t.Ended = t.Received.Add(end.times.Total())
	t.Phases = make([]invocation.PhaseTime, 0, timeline.Phases)
	for phase, span := range end.times.All() {
		t.Phases = append(t.Phases, invocation.PhaseTime{Phase: phase.String(), Took: span.Duration()})
	}
	return t
}

// logAttrs are the attributes of a call's log line, without empty ones.
func logAttrs(a invocation.Record) []slog.Attr {
	attrs := make([]slog.Attr, 0, 16)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("function", a.Function.String())
	add("revision", a.Revision)
	add("invocation", a.ID.String())
	add("trace", a.Trace)
	add("cid", string(a.CID))
	attrs = append(attrs, slog.Int("code", a.Code), slog.String("executed", string(a.Executed)))
	add("reason", a.Reason)
	if a.Broken {
		attrs = append(attrs, slog.Bool("broken", true))
	}
	if a.Attempt > 0 {
		attrs = append(attrs, slog.Int("attempt", a.Attempt), slog.Bool("cold", a.Cold), slog.Time("claimed", a.Claimed))
	}
	attrs = append(attrs, slog.Time("received", a.Received), slog.Time("ended", a.Ended))
	for _, s := range a.Phases {
		attrs = append(attrs, slog.Float64(s.Phase+"_ms", float64(s.Took.Microseconds())/1e3))
	}
	return attrs
}

// Attributes of spans that OpenTelemetry has no words for.
const (
	attributeAttempt  = "windlass.attempt"
	attributeExecuted = "windlass.executed"
	attributeLink     = "windlass.link"
)

const (
	// route stands for all functions and paths, so that spans can be grouped by it.
	route = "/function/{function}/{path...}"
	// provider is the name that traces give to the platform.
	provider = "windlass"
)

// The span of a call has the number 0, and that of the n-th attempt's execution, which the
// function learns before it begins, n. Other spans are counted from here.
const otherSpans = 1 << 20

// callRecord is everything that is known of a call that has ended.
type callRecord struct {
	invocation.Record
	// uid and version are those of the unit that it belonged to.
	uid, version, method string
	scope                tracing.Scope
	times                timeline.Timeline
	// earlier are the attempts before the last one.
	earlier []earlierAttempt
}

// trace is the trace of the call: one span from its receipt to its end, and its phases below,
// without gaps. The queue phase of a retried call contains its earlier attempts.
func (t callRecord) trace() tracing.Trace {
	spans := []tracing.Span{t.whole()}
	add := func(s tracing.Span) {
		if s.Number == 0 {
			s.Number = otherSpans + len(spans)
		}
		spans = append(spans, s)
	}
	for phase, span := range t.times.All() {
		s := tracing.Span{Name: phase.String(), Kind: trace.SpanKindInternal, Start: span.From, End: span.To}
		switch phase {
		case timeline.Queue:
			for _, earlier := range t.earlier {
				at := within(earlier.from, s.Start, span.To)
				add(tracing.Span{Name: s.Name, Kind: s.Kind, Start: s.Start, End: at})
				s.Start = within(earlier.until, at, span.To)
				add(earlier.span(t.Function, at, s.Start))
			}
		case timeline.Execute:
			s.Number, s.Kind = t.Attempt, trace.SpanKindClient
			s.Attributes = executionAttributes(t.Function, t.CID, t.Attempt)
			s.Error = t.failure()
		case timeline.Core, timeline.Claim:
			s.Attributes = attemptAttributes(t.CID, t.Attempt)
		}
		add(s)
	}
	return tracing.Trace{Scope: t.scope, Spans: spans}
}

// span is that of an attempt which did not end the call.
func (e earlierAttempt) span(of invocation.FunctionKey, from, until time.Time) tracing.Span {
	s := tracing.Span{
		Name: timeline.Claim.String(), Kind: trace.SpanKindInternal, Start: from, End: until,
		Attributes: attemptAttributes(e.cid, e.number), Error: e.why,
	}
	if e.ran {
		s.Name, s.Kind, s.Number = timeline.Execute.String(), trace.SpanKindClient, e.number
		s.Attributes = executionAttributes(of, e.cid, e.number)
	}
	return s
}

// whole is the span of the whole call. The first call of an instance links to the instance's
// start.
func (t callRecord) whole() tracing.Span {
	s := tracing.Span{
		Name: "invoke " + t.Function.String(), Kind: trace.SpanKindServer, Start: t.Received, End: t.Ended, Error: t.failure(),
		Attributes: []attribute.KeyValue{
			semconv.HTTPRequestMethodKey.String(t.method), semconv.HTTPRoute(route),
			semconv.FaaSName(t.Function.Name), semconv.FaaSVersion(t.version), semconv.K8SNamespaceName(t.Function.Namespace),
			semconv.FaaSTriggerHTTP, semconv.FaaSInvocationID(t.ID.String()),
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

// failure is what failed: the reason, or that the function answered with an error. A client's
// mistake is no failure, but an answer that broke off is one with any code.
func (t callRecord) failure() string {
	switch {
	case t.Code == codeLeft:
		return "the client left"
	case t.Broken:
		return t.Reason
	case t.Code < 500:
		return ""
	case t.Reason != "":
		return t.Reason
	}
	return "the function answered with an error"
}

// executionAttributes name the function of an attempt. They leave out its revision: the one of
// an earlier attempt may have been removed since.
func executionAttributes(of invocation.FunctionKey, cid invocation.CID, number int) []attribute.KeyValue {
	return append(attemptAttributes(cid, number),
		semconv.FaaSInvokedName(of.Name), semconv.FaaSInvokedProviderKey.String(provider), semconv.K8SNamespaceName(of.Namespace))
}

func attemptAttributes(cid invocation.CID, number int) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.FaaSInstance(string(cid)), attribute.Int(attributeAttempt, number)}
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
