// Package bench says what windlass bench measures, and what follows from it. It is pure: a plan
// is a value made of the arguments, and a report is a function of the measurements.
//
// A Scenario is a load on functions. A Path is a way from the client to the function: directly,
// through proxies, through Windlass. Plan.Steps puts the measurements in order: in each round every
// scenario is measured on every path, one right after the other, and each round begins with
// another path, so that what else the machine does hits all alike. Ratios are made round by round,
// of measurements that are seconds apart. The first round warms up and does not count.
//
// Ratios of throughput stand beside the same ratios without Windlass, of the same rounds. Figures with a
// goal say whether they meet it.
//
// The unit is one hop through a Go httputil.ReverseProxy to the same function.
//
// Package measure starts the programs and measures.
package bench
