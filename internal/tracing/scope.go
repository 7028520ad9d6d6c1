package tracing

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Headers of W3C Trace Context, as net/http writes them.
const (
	HeaderParent = "Traceparent"
	HeaderState  = "Tracestate"
)

// Scope is the place of a call in a trace: which one it belongs to, below which
// span of its client, and whether it is recorded. The zero Scope belongs to none.
type Scope struct {
	id trace.TraceID
	// parent is the client's span; its zero value if there is none.
	parent   trace.SpanContext
	recorded bool
	// base is what the ids of the scope's own spans are counted from.
	base uint64
}

// Begin decides whether a call is recorded: by what its client has decided, if clients
// are trusted, or else by the ratio. A call that begins a trace gives it its own id, so that one
// finds the other. Without a Tracer nothing is recorded.
func (t *Tracer) Begin(h http.Header, id invocation.ID) Scope {
	ctx, s := context.Background(), Scope{id: trace.TraceID(id)}
	if h[HeaderParent] != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
		if s.parent = trace.SpanContextFromContext(ctx); s.parent.IsValid() {
			s.id = s.parent.TraceID()
		}
	}
	if t == nil {
		return s
	}
	of := s.id
	if !t.config.TrustClients {
		// The id of a trace is the client's choice as well, and the ratio goes by it.
		ctx, of = context.Background(), trace.TraceID(id)
	}
	if t.sampled(ctx, of) {
		s.recorded, s.base = true, rand.Uint64()
	}
	return s
}

func (t *Tracer) sampled(ctx context.Context, id trace.TraceID) bool {
	verdict := t.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx, TraceID: id, Kind: trace.SpanKindServer})
	return verdict.Decision == sdktrace.RecordAndSample
}

// Recorded reports whether the scope's spans are recorded.
func (s Scope) Recorded() bool { return s.recorded }

// TraceID is the id of the trace as 32 hexadecimal digits, or empty if the call is
// in none that anybody records or has sent.
func (s Scope) TraceID() string {
	if !s.recorded && !s.parent.IsValid() {
		return ""
	}
	return s.id.String()
}

// Span is the id of one of the scope's own spans, which are numbered from 0; that
// is the one below the client's.
func (s Scope) Span(n int) trace.SpanID {
	var id trace.SpanID
	binary.BigEndian.PutUint64(id[:], s.base+uint64(n))
	if !id.IsValid() {
		// No span may have the id 0, and no scope has that many spans.
		id[0] = 0x80
	}
	return id
}

// Parent is the traceparent that makes span n the parent of its receiver's spans.
func (s Scope) Parent(n int) string {
	span := s.Span(n)
	value := make([]byte, 0, 55)
	value = append(value, "00-"...)
	value = hex.AppendEncode(value, s.id[:])
	value = append(value, '-')
	value = hex.AppendEncode(value, span[:])
	return string(append(value, "-01"...))
}

// Follows reports whether the scope has a parent: another program began the trace.
func (s Scope) Follows() bool { return s.parent.IsValid() }

// wireBytes is the length of a scope on the wire.
const wireBytes = len(trace.TraceID{}) + len(trace.SpanID{})

// Wire names the scope's first span to others: trace id and span id, or nil if it
// is not recorded.
func (s Scope) Wire() []byte {
	if !s.recorded {
		return nil
	}
	span := s.Span(0)
	return append(append(make([]byte, 0, wireBytes), s.id[:]...), span[:]...)
}

// FromWire reads what Wire wrote. It is invalid if that is nothing that Wire writes.
func FromWire(wire []byte) trace.SpanContext {
	if len(wire) != wireBytes {
		return trace.SpanContext{}
	}
	var id trace.TraceID
	return spanContext(trace.TraceID(wire[:len(id)]), trace.SpanID(wire[len(id):]))
}

// spanContext names a recorded span.
func spanContext(id trace.TraceID, span trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled})
}
