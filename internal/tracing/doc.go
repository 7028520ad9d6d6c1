// Package tracing decides which calls are recorded as OpenTelemetry traces, carries
// their identity in the headers of W3C Trace Context, and sends what was recorded to
// a collector by OTLP.
//
// What happened is recorded when it is over, as a value (Trace) whose spans name
// each other by ids that were known from the start: so whoever is told of a span
// while it lasts, such as the function that is called, can name it as its parent.
//
// It promises: nobody who records waits, whatever the collector does; what waits to
// be sent is bounded, and what does not fit is dropped and counted; and a call that
// is not recorded costs no more than looking whether its client sent a trace.
package tracing
