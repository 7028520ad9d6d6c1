package main

import (
	"fmt"
	"io"
	"slices"
)

// report prints what a call cost, and how many times the cost of the first one that
// was: by rounds, and in all.
func report(out io.Writer, clients int, costs map[string][]cost) {
	base := costs[variants[0].name]
	for _, v := range variants {
		fmt.Fprintf(out, "observability_cpu_us_per_call_%s_%d_clients=%.1f\n", v.name, clients, inAll(costs[v.name])*1e6)
	}
	for _, v := range variants[1:] {
		low, median, high := quartiles(ratios(costs[v.name], base))
		fmt.Fprintf(out, "observability_cpu_ratio_%s_%d_clients=%.3f (half of %d rounds from %.3f to %.3f, in all %.3f)",
			v.name, clients, median, len(base), low, high, inAll(costs[v.name])/inAll(base))
		if v.goal > 0 {
			fmt.Fprintf(out, " goal<=%.2f", v.goal)
		}
		fmt.Fprintln(out)
	}
}

// ratios compares the costs of a call round by round.
func ratios(of, to []cost) []float64 {
	compared := make([]float64, len(of))
	for i := range of {
		compared[i] = of[i].perCall() / to[i].perCall()
	}
	return compared
}

// inAll is what a call cost over all rounds, in seconds.
func inAll(costs []cost) float64 {
	var sum cost
	for _, c := range costs {
		sum.cpu += c.cpu
		sum.calls += c.calls
	}
	return sum.perCall()
}

// quartiles are those of at least one value.
func quartiles(values []float64) (low, median, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[n/4], (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[n-1-n/4]
}
