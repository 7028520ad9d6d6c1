package main

import (
	"strings"
	"testing"
)

func TestReportComparesRoundByRound(t *testing.T) {
	var out strings.Builder
	costs := map[string][]cost{"off": {{100, 1}, {400, 2}, {1200, 3}}}
	for _, v := range variants[1:] {
		costs[v.name] = []cost{{1100, 10}, {200, 1}, {480, 1}}
	}
	report(&out, 16, costs)
	for _, want := range []string{
		"observability_cpu_us_per_call_off_16_clients=0.3\n",
		"observability_cpu_ratio_metrics_16_clients=1.100 (half of 3 rounds from 1.000 to 1.200, in all 0.524) goal<=1.05\n",
		"observability_cpu_ratio_sampled-0_16_clients=1.100 (half of 3 rounds from 1.000 to 1.200, in all 0.524)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says\n%swithout\n%s", out.String(), want)
		}
	}
}
