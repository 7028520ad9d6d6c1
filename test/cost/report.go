package main

import (
	"fmt"
	"io"
	"slices"
)

// report prints what a call cost, and how many times the cost of the first one that
// was, by rounds.
func report(out io.Writer, clients int, costs map[string][]float64) {
	base := costs[variants[0].name]
	for _, v := range variants {
		_, median, _ := quartiles(costs[v.name])
		fmt.Fprintf(out, "observability_cpu_us_per_call_%s_%d_clients=%.1f\n", v.name, clients, median*1e6)
	}
	for _, v := range variants[1:] {
		low, median, high := quartiles(ratios(costs[v.name], base))
		fmt.Fprintf(out, "observability_cpu_ratio_%s_%d_clients=%.3f (half of %d rounds from %.3f to %.3f) goal<=%.2f\n",
			v.name, clients, median, len(base), low, high, v.goal)
	}
}

// ratios compares two costs round by round.
func ratios(of, to []float64) []float64 {
	compared := make([]float64, len(of))
	for i := range of {
		compared[i] = of[i] / to[i]
	}
	return compared
}

// quartiles are those of at least one value.
func quartiles(values []float64) (low, median, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[n/4], (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[n-1-n/4]
}
