package tracing

import (
	"context"
	"errors"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// instrumentation is the scope of all spans, in OpenTelemetry's sense.
const instrumentation = "github.com/windlass-dev/windlass"

// Run sends records until ctx ends, and then the waiting ones for at most three seconds.
func (t *Tracer) Run(ctx context.Context) error {
	// It connects to nothing yet, and what waits is sent even if ctx has ended.
	if err := t.exporter.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	for ctx.Err() == nil {
		t.gather(ctx)
		t.exportBatch(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWithin)
	defer cancel()
	for t.gatherRest(); len(t.batch.spans) > 0; t.gatherRest() {
		t.exportBatch(last)
	}
	_ = t.exporter.Shutdown(last)
	return nil
}

// gather waits for a trace, and for others that can go with it.
func (t *Tracer) gather(ctx context.Context) {
	var late <-chan time.Time
	for len(t.batch.spans) < maxBatch {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case r := <-t.waiting:
			if late == nil {
				late = time.After(batchWithin)
			}
			t.takeWaiting(r)
		}
	}
}

// gatherRest takes of what waits already as much as is sent at once.
func (t *Tracer) gatherRest() {
	for len(t.batch.spans) < maxBatch {
		select {
		case r := <-t.waiting:
			t.takeWaiting(r)
		default:
			return
		}
	}
}

func (t *Tracer) takeWaiting(r Trace) { r.replay(t.provider.Tracer(instrumentation)) }

// exportBatch exports the batch. One that was interrupted because the Tracer is to end is
// kept for another attempt.
func (t *Tracer) exportBatch(ctx context.Context) {
	spans := t.batch.spans
	if len(spans) == 0 {
		return
	}
	err := t.exporter.ExportSpans(ctx, spans)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
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
