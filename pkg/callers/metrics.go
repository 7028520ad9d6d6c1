package callers

import "github.com/windlass-dev/windlass/internal/metric"

// Metrics are what a gateway tells of who may call.
var Metrics metric.Set

var brokenNow = Metrics.Gauge("windlass_gateway_callers_broken",
	"1 while the policy or the list of API keys cannot be read and what was read before counts; otherwise 0.")
