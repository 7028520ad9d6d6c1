package role

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/internal/mtls"
)

// Metrics declares the metrics of every program of a cluster.
var Metrics metric.Set

var linesDroppedTotal = Metrics.Counter(metric.Stable, "windlass_log_lines_dropped_total",
	"Log lines that the program dropped because their reader was too slow. Calls never wait for the log.")

var certificateExpiry = Metrics.Gauge(metric.Stable, "windlass_tls_certificate_expiry_timestamp_seconds",
	"Unix time at which the certificate in use expires.")

// RegisterExpiry tells when the certificate of credentials ends, also once it was replaced.
func RegisterExpiry(registry prometheus.Registerer, tls *mtls.Credentials) {
	registry.MustRegister(certificateExpiry.Func(func() float64 { return float64(tls.Expires().Unix()) }))
}
