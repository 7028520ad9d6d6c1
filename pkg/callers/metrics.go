package callers

import "github.com/windlass-dev/windlass/internal/metric"

// Metrics are what a gateway tells of who may call.
var Metrics metric.Set

var (
	reloadedDecl = Metrics.Gauge(metric.Stable, "windlass_gateway_policy_last_reload_successful",
		"1 if the policy and the list of API keys could be read when last tried; 0 if not, and what was read before counts.")
	reloadedAtDecl = Metrics.Gauge(metric.Stable, "windlass_gateway_policy_last_reload_success_timestamp_seconds",
		"When the policy and the list of API keys that count were read, as a Unix time.")
	unknownDecl = Metrics.Gauge(metric.Experimental, "windlass_gateway_policy_unknown_entries",
		"Entries of the policy and of the list of API keys that this release does not know: fields, which mean nothing, and values, which let nobody in.")
)
