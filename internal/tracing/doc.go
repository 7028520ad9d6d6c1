// Package tracing decides which calls are recorded as OpenTelemetry traces, carries their identity
// in the headers of W3C Trace Context, and sends the records to a collector by OTLP.
//
// Invariants:
//
//   - Recording never waits, whatever the collector does.
//   - The queue of records is bounded; records that do not fit are dropped and counted.
//   - A call that is not recorded costs no more than looking for a trace header.
//
// An operation is recorded when it is over, as a value (Trace) whose spans name each other by ids
// that are known from the start. So the called function, which receives the id of a span while
// that lasts, can name it as its parent.
package tracing
