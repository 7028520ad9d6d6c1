package main

import (
	"strings"
	"testing"
	"time"
)

func TestReportComparesRoundByRound(t *testing.T) {
	found := make(map[string][]sample)
	for i, v := range variants {
		for round := range 3 {
			cpu := time.Duration((i+1)*(round+1)*100) * time.Microsecond
			found[v.name] = append(found[v.name], sample{
				cpu: cpu, parts: map[string]time.Duration{partGateway: cpu / 4, partAgents: 3 * cpu / 4}, switches: float64(round), p50: cpu,
			})
		}
	}
	var out strings.Builder
	report(&out, 32, found)
	for _, want := range []string{
		"\nproxy          200.00 (100.00 to 300.00)      50.0    150.0 1.00 (0.00 to 2.00)          200\n",
		"\ntwo_hops_cpu_over_proxy_c32=2.00 (2.00 to 2.00)\n",
		"\nframes_cpu_over_proxy_c32=3.00 (3.00 to 3.00)\n",
		"\nhttp_relayed_cpu_over_frames_c32=2.00 (2.00 to 2.00)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says\n%swithout%s", out.String(), want)
		}
	}
}

func TestSpreadIsMedianLowestAndHighest(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{2}, spread{2, 2, 2}},
		{[]float64{3, 1}, spread{2, 1, 3}},
		{[]float64{9, 1, 4}, spread{4, 1, 9}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestRunsAreBounded(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-rounds", "101"}, {"-for", "0s"}, {"-for", "1h"}, {"-rounds", "1", "more"}} {
		if err := run(args, new(strings.Builder)); err == nil {
			t.Errorf("it runs with %q", args)
		}
	}
}
