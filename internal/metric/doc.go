// Package metric declares metrics, so that what a program tells of itself and what
// docs/metrics.md says of it come from the same values.
//
// A package that counts has one Set and declares its metrics in it, as variables:
//
//	// Metrics are what a gateway tells.
//	var Metrics metric.Set
//
//	var invocations = Metrics.Counter(metric.Stable, "windlass_gateway_invocations_total",
//		"Calls that were answered or given up.", "function_namespace", "function")
//
// and makes its collectors of those: invocations.Vec(), tick.New(), queued.Desc().
// Nothing else makes collectors, which internal/doccheck sees to, so that none is
// missing in the documentation; internal/metricsdoc writes that, and names every Set.
//
// It promises of every declaration: its name begins with windlass_, ends with its unit
// if it has one, and with _total if it counts; it says what it means in a sentence; and
// a histogram has buckets of both kinds, classic and native, the latter bounded, unless it
// is declared as Native. It says how long it stays as it is: stable metrics can be built upon. A declaration that is
// otherwise panics when its program starts. A Set is written to while variables are
// initialized, and only read after that.
package metric
