package auth

import "github.com/windlass-dev/windlass/internal/metric"

// Metrics are what a gateway tells of who may call.
var Metrics metric.Set

var (
	reloadedDecl = Metrics.Gauge(metric.Stable, "windlass_gateway_policy_last_reload_successful",
		"1 if the last reload of the policy and the API keys succeeded. 0 if it failed and the gateway still uses the previous ones.")
	reloadedAtDecl = Metrics.Gauge(metric.Stable, "windlass_gateway_policy_last_reload_success_timestamp_seconds",
		"Unix time of the last successful reload of the policy and the API keys.")
	unknownDecl = Metrics.Gauge(metric.Experimental, "windlass_gateway_policy_unknown_entries",
		"Entries of the policy and the API keys that this release does not know. It ignores unknown fields, and unknown values give nobody access.")
)
