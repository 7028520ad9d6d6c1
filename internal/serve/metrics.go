package serve

import (
	"errors"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/metric"
)

// Metrics declares the metrics of every server about rejected clients.
var Metrics metric.Set

// Build declares the metrics of every program about itself.
var Build metric.Set

var buildInfo = Build.Gauge(metric.Stable, "windlass_build_info",
	"1, with the versions of Windlass and of Go in the labels.", "version", "go_version")

// NewBuildInfo exports the running release.
func NewBuildInfo() prometheus.Collector {
	vec := buildInfo.Vec()
	vec.WithLabelValues(buildinfo.Version, runtime.Version()).Set(1)
	return vec
}

var (
	wireRefusedTotal = Metrics.Counter(metric.Stable, "windlass_wire_streams_refused_total",
		"Streams from agents, gateways, schedulers and the controller that the program refused, by method and gRPC status code. "+
			"A connection that carries calls between an agent and a gateway counts as a stream of the method callwire.", "method", "code")
	wireUnknownTotal = Metrics.Counter(metric.Experimental, "windlass_wire_unknown_total",
		"Messages from agents with content that this release does not know and ignores, by the kind of message.", "message")
	strangersClosedTotal = Metrics.Counter(metric.Experimental, "windlass_wire_unauthenticated_closed_total",
		"Connections that the program closed because too many clients had not yet proven who they are. Agents that this hits connect again.")
	httpClosedTotal = Metrics.Counter(metric.Experimental, "windlass_http_connections_closed_total",
		"Connections of clients that the program closed because too many were open without a request. It closes those that wait longest of the address with the most.")
	httpRefusedTotal = Metrics.Counter(metric.Stable, "windlass_http_requests_refused_total",
		"Requests that the program refused because they are not valid HTTP/1.1, by the status code of the answer.", "code")
)

// registered registers a collector, or returns the one that another server of the program has
// registered for the same metric.
func registered[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	err := reg.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		return already.ExistingCollector.(C)
	}
	if err != nil {
		panic(err) // two metrics have the same name
	}
	return c
}
