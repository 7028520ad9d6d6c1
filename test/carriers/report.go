package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Parts of a way, whose processes count.
const (
	partProxy   = "proxy"
	partGateway = "gateway"
	partAgents  = "agents"
)

// sample is what one round found of a variant: a call's CPU time in all processes but the function,
// and by part, their context switches for it, and its median latency.
type sample struct {
	cpu      time.Duration
	parts    map[string]time.Duration
	switches float64
	p50      time.Duration
}

// spread is the median of some rounds, with the lowest and the highest.
type spread struct{ median, lowest, highest float64 }

func (s spread) String() string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", s.median, s.lowest, s.highest)
}

// spreadOf is that of at least one value.
func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// ratios compares by rounds, so that what else the machine does hits both sides.
func ratios(of, to []sample, by func(sample) float64) spread {
	values := make([]float64, min(len(of), len(to)))
	for i := range values {
		values[i] = by(of[i]) / by(to[i])
	}
	return spreadOf(values)
}

func overRounds(of []sample, by func(sample) float64) spread {
	values := make([]float64, len(of))
	for i, s := range of {
		values[i] = by(s)
	}
	return spreadOf(values)
}

func cpuMicros(s sample) float64 { return float64(s.cpu) / 1e3 }
func p50Micros(s sample) float64 { return float64(s.p50) / 1e3 }
func switchCount(s sample) float64 {
	return s.switches
}

func partMicros(part string) func(sample) float64 {
	return func(s sample) float64 { return float64(s.parts[part]) / 1e3 }
}

// compared is the carrier to which others are compared beside the proxy.
const compared = "frames"

// report prints what the rounds at a number of connections found: a table, and the figures.
func report(out io.Writer, connections int, found map[string][]sample) {
	fmt.Fprintf(out, "\n%d instances of concurrency 1, %d connections\n", instances, connections)
	fmt.Fprintf(out, "%-14s %-26s %8s %8s %-23s %8s\n", "variant", "cpu us a call", "gateway", "agents", "switches", "p50 us")
	for _, v := range variants {
		of := found[v.name]
		fmt.Fprintf(out, "%-14s %-26s %8.1f %8.1f %-23s %8.0f\n", v.name, overRounds(of, cpuMicros),
			overRounds(of, partMicros(partGateway)).median, overRounds(of, partMicros(partAgents)).median,
			overRounds(of, switchCount), overRounds(of, p50Micros).median)
	}
	fmt.Fprintln(out)
	for _, v := range variants[1:] {
		fmt.Fprintf(out, "%s_cpu_over_proxy_c%d=%s\n", v.name, connections, ratios(found[v.name], found[variants[0].name], cpuMicros))
	}
	for _, v := range carriers() {
		if v.name != compared {
			fmt.Fprintf(out, "%s_cpu_over_%s_c%d=%s\n", v.name, compared, connections, ratios(found[v.name], found[compared], cpuMicros))
		}
	}
}
