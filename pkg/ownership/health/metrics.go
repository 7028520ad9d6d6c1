package health

import "github.com/windlass-dev/windlass/internal/metric"

// Metrics declares the metrics of a gateway or a scheduler about the schedulers that it
// watches.
var Metrics metric.Set

var silentNow = Metrics.Gauge(metric.Stable, "windlass_peers_silent",
	"Schedulers that do not answer this program. Standbys serve their functions.")
