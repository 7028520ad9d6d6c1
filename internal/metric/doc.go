// Package metric declares metrics as values, from which a program's collectors and
// docs/metrics.md are both made.
//
// A package that counts has one Set and declares its metrics in it, as variables:
//
//	// Metrics declares the metrics of a gateway.
//	var Metrics metric.Set
//
//	var invocations = Metrics.Counter(metric.Stable, "windlass_gateway_invocations_total",
//		"Calls that were answered or given up.", "function_namespace", "function")
//
// and makes its collectors of those: invocations.Vec(), tick.New(), queued.Desc(). No other
// code makes collectors, as internal/doccheck tests, so that the documentation lists all of
// them; internal/metricsdoc writes it, and names every Set.
//
// Invariants of every declaration:
//
//   - Its name begins with windlass_, ends with its unit if it has one, and with _total if it
//     counts.
//   - Its help explains it in a sentence.
//   - A histogram has buckets of both kinds, classic and native, the latter bounded, unless it
//     is declared as Native.
//   - It has a stability; users can build on stable metrics.
//
// A declaration that breaks one panics when its program starts. A Set is written to while
// variables are initialized, and only read after that.
package metric
