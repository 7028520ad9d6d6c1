// Package tracetest is an OpenTelemetry collector for tests: it takes spans by OTLP
// over gRPC and keeps them.
package tracetest
