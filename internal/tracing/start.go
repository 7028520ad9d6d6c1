package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/otel/trace"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// StartOf is the scope of an instance's start, which is a trace of its own. Its ids follow
// from the instance's identity, so that each call of the instance can link to its start
// without any communication.
func StartOf(functionUID string, cid invocation.CID) Scope {
	sum := sha256.Sum256([]byte(functionUID + "/" + string(cid)))
	return Scope{id: trace.TraceID(sum[:16]), base: binary.BigEndian.Uint64(sum[16:])}
}

// Context names the scope's first span, for links to it.
func (s Scope) Context() trace.SpanContext { return spanContext(s.id, s.Span(0)) }

// BeginStart decides whether an instance's start is recorded: if a recorded call
// waited for it or is served by it, and else by the ratio. Without a Tracer
// nothing is recorded.
func (t *Tracer) BeginStart(functionUID string, cid invocation.CID, wanted bool) Scope {
	s := StartOf(functionUID, cid)
	if t == nil {
		return s
	}
	s.recorded = wanted || t.sampled(context.Background(), s.id)
	return s
}
