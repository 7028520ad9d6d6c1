package scheduler

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// maxWaitingCalls bounds the recorded calls that are remembered for a function while they
// wait, and so the links of the trace of a start.
const maxWaitingCalls = 32

// Traces records starts of instances. It is implemented by tracing.Tracer.
type Traces interface {
	// BeginStart decides whether to record a start. wanted says that a recorded call waited
	// for it.
	BeginStart(functionUID string, cid invocation.CID, wanted bool) tracing.Scope
	Record(trace tracing.Trace)
}

// waitingCalls are recorded calls of a function that wait, or waited recently.
type waitingCalls []waitingCall

type waitingCall struct {
	id   invocation.ID
	span trace.SpanContext
}

// rememberCall remembers a waiting call if it is recorded. It replaces calls that no longer
// wait; if all still do, the first ones are enough. The caller holds the function's lock.
func (u *unit) rememberCall(id invocation.ID, wire *agentwire.Ticket) {
	span := tracing.FromWire(wire.GetTrace())
	if !span.IsValid() {
		return
	}
	calls := &u.stats.waitingCalls
	if len(*calls) >= maxWaitingCalls {
		u.waitingSpans()
	}
	known := slices.ContainsFunc(*calls, func(c waitingCall) bool { return c.id == id })
	if !known && len(*calls) < maxWaitingCalls {
		*calls = append(*calls, waitingCall{id, span})
	}
}

// waitingSpans returns the spans of the recorded calls that wait, and drops the others. The
// caller holds the function's lock.
func (u *unit) waitingSpans() (spans []trace.SpanContext) {
	u.stats.waitingCalls = slices.DeleteFunc(u.stats.waitingCalls, func(c waitingCall) bool { return !u.core.IsWaiting(c.id) })
	for _, c := range u.stats.waitingCalls {
		spans = append(spans, c.span)
	}
	return spans
}

// firstCallSpan is the span of the first call that an instance received; not valid if it
// received none, or if the call is not recorded.
func (u *unit) firstCallSpan(p *pullStream) (span trace.SpanContext) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.stats.waitingCalls {
		if p.first != nil && c.id == *p.first {
			return c.span
		}
	}
	return span
}

// startRecord describes a finished start of an instance.
type startRecord struct {
	key     provisioner.Key
	fn      *v1alpha1.Function
	node    string
	moments coldstart.Moments
	// waited are the calls that waited at the launch, and served is the first call that the
	// instance received, if it is recorded.
	waited []trace.SpanContext
	served trace.SpanContext
	// failure is why the start failed; empty if it succeeded.
	failure string
}

// recordStart records a start if its trace was selected.
func (s *shell) recordStart(of startRecord) {
	scope := s.deps.Traces.BeginStart(of.key.FunctionUID, of.key.CID, len(of.waited) > 0 || of.served.IsValid())
	if !scope.Recorded() {
		return
	}
	for _, in := range s.deps.Instances.Instances(of.key.FunctionUID) {
		if in.CID == of.key.CID {
			of.node = in.Node
		}
	}
	s.deps.Traces.Record(tracing.Trace{Scope: scope, Spans: of.spans()})
}

// spans are one span from when the instance was wanted until it was ready, with its phases
// below it, without gaps. Phases that took no time are left out.
func (of startRecord) spans() []tracing.Span {
	bounds := of.moments.Bounds()
	whole := tracing.Span{
		Name: "start instance " + of.fn.Key().String(), Kind: trace.SpanKindInternal,
		Start: bounds[0], End: bounds[coldstart.NumPhases], Links: of.links(), Error: of.failure,
		Attributes: []attribute.KeyValue{
			semconv.FaaSName(of.fn.Name), semconv.K8SNamespaceName(of.fn.Namespace), semconv.FaaSVersion(of.fn.Revision()),
			semconv.FaaSInstance(string(of.key.CID)),
		},
	}
	if of.node != "" {
		whole.Attributes = append(whole.Attributes, semconv.K8SNodeName(of.node))
	}
	spans := []tracing.Span{whole}
	for phase := range coldstart.NumPhases {
		if from, to := bounds[phase], bounds[phase+1]; to.After(from) {
			spans = append(spans, tracing.Span{
				Number: 1 + int(phase), Name: phase.String(), Kind: trace.SpanKindInternal, Start: from, End: to,
			})
		}
	}
	return spans
}

// links lead to the calls that waited for the start, and to the first call that it served.
func (of startRecord) links() []trace.Link {
	links := make([]trace.Link, 0, len(of.waited)+1)
	add := func(span trace.SpanContext, why string) {
		links = append(links, trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{attribute.String("windlass.link", why)}})
	}
	for _, span := range of.waited {
		add(span, "call that waited")
	}
	if of.served.IsValid() && !slices.ContainsFunc(of.waited, of.served.Equal) {
		add(of.served, "first call")
	}
	return links
}
