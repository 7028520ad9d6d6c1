package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"
)

// Goals.
const (
	// leastEfficiency is how much of the nodes' ratio the throughput's is to reach:
	// 3.7 of 4.
	leastEfficiency = 0.925
	mostPerNeeded   = 1.5
	mostSpareStart  = 150 * time.Millisecond
	mostWarmCPU     = 300 // microseconds
)

func reportScaleOut(out io.Writer, o options, all []throughput) {
	fmt.Fprintf(out, "instances_per_node=%d\ncall_ms=%d\n", o.instances, holdTime.Milliseconds())
	for _, t := range all {
		// What so many instances could answer if nothing but the calls took time.
		ideal := float64(t.instances) / holdTime.Seconds()
		fmt.Fprintf(out, "throughput_%d=%.2f\nideal_%d=%.2f\nramp_%d_s=%.1f\nfailed_%d=%d\n",
			t.nodes, t.perSecond, t.nodes, ideal, t.nodes, t.ramp.Seconds(), t.nodes, t.failed)
	}
	first, last := all[0], all[len(all)-1]
	ratio := last.perSecond / first.perSecond
	fmt.Fprintf(out, "ratio_%d_%d=%.3f\n", last.nodes, first.nodes, ratio)
	fmt.Fprintf(out, "goal_reached=%t\n", ratio >= leastEfficiency*float64(last.nodes)/float64(first.nodes))
}

func reportBurst(out io.Writer, o options, b burst) {
	ratio := float64(b.created) / float64(b.needed)
	fmt.Fprintf(out, "rate=%g\nlength_s=%g\ncalls=%d\nfailed=%d\n", o.rate, o.length.Seconds(), b.calls, b.failed)
	fmt.Fprintf(out, "created=%d\nneeded=%d\ncreated_by_needed=%.3f\ninstances_at_the_end=%d\n", b.created, b.needed, ratio, b.most)
	printQuantiles(out, "wait", b.waits)
	fmt.Fprintf(out, "goal_reached=%t\n", b.failed == 0 && ratio <= mostPerNeeded)
}

// reportWarm prints the CPU time of a call, of the cores that each role used at a rate of calls.
func reportWarm(out io.Writer, rate float64, failed int64, cores map[string]float64) {
	fmt.Fprintf(out, "instances=%d\nclients=%d\ncalls_per_second=%.0f\nfailed=%d\n", warmInstances, warmClients, rate, failed)
	var windlass float64
	for _, role := range slices.Sorted(maps.Keys(cores)) {
		us := cores[role] / rate * 1e6
		if role != "function" {
			windlass += us
		}
		fmt.Fprintf(out, "cpu_us_per_warm_call_%s=%.1f\n", role, us)
	}
	fmt.Fprintf(out, "cpu_us_per_warm_call=%.1f\n", windlass)
	fmt.Fprintf(out, "goal_reached=%t\n", failed == 0 && windlass <= mostWarmCPU)
}

func reportWarmPool(out io.Writer, byPod, bySpare []start) {
	waits := func(starts []start) (all []time.Duration) {
		for _, s := range starts {
			all = append(all, s.waited)
		}
		return all
	}
	taken := 0
	for _, s := range bySpare {
		if s.spare {
			taken++
		}
	}
	pods, spares := waits(byPod), waits(bySpare)
	fmt.Fprintf(out, "runs=%d\nserved_by_spares=%d\n", len(bySpare), taken)
	printQuantiles(out, "pod_start", pods)
	printQuantiles(out, "spare_start", spares)
	fmt.Fprintf(out, "goal_reached=%t\n", taken == len(bySpare) && quantile(spares, 0.5) <= mostSpareStart)
}

func printQuantiles(out io.Writer, name string, all []time.Duration) {
	if len(all) == 0 {
		fmt.Fprintf(out, "%s_p50_ms=unknown\n%s_p99_ms=unknown\n%s_max_ms=unknown\n", name, name, name)
		return
	}
	for _, q := range []struct {
		name  string
		share float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
		fmt.Fprintf(out, "%s_%s_ms=%.1f\n", name, q.name, float64(quantile(all, q.share))/float64(time.Millisecond))
	}
}

// quantile is the smallest of the durations that a share of them does not exceed.
// There must be one.
func quantile(all []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(max(ceil(share*float64(len(sorted)))-1, 0), len(sorted)-1)]
}

// ceil rounds up, but for what is only an error of floating point.
func ceil(v float64) int { return int(math.Ceil(v - 1e-9)) }
