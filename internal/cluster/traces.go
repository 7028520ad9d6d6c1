package cluster

import (
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/tracing"
)

// startTraces sends what is recorded from now on, until all that is started later has
// ended. There is nothing to send, and no Tracer, unless the configuration names a
// collector.
func startTraces(
	parts *lifecycle.Lifecycle, config tracing.Config, service string, registry prometheus.Registerer, log *slog.Logger,
) (*tracing.Tracer, error) {
	// A pod's host name is its own; without one, service and address are all there is.
	instance, _ := os.Hostname()
	traces, err := tracing.New(config, tracing.Deps{Service: service, Instance: instance, Registry: registry, Log: log})
	if traces != nil {
		parts.Start("traces", traces.Run)
	}
	return traces, err
}
