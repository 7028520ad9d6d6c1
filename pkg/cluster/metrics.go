package cluster

import "github.com/windlass-dev/windlass/internal/metric"

// Metrics are what every program of a cluster tells.
var Metrics metric.Set

var linesDroppedTotal = Metrics.Counter("windlass_log_lines_dropped_total",
	"Lines of log that were dropped because nobody took them. Calls never wait for the log.")
