package bench

import "fmt"

// bars are what figures should be at most, or at least if more is better.
var bars = map[string]float64{
	"warm_call_cpu_over_proxy_8x1_c32":       1.8,
	"warm_call_tls_cpu_over_proxy_8x1_c32":   1.8,
	"warm_call_cpu_over_proxy_8x1_c1":        1.5,
	"warm_call_tls_cpu_over_proxy_8x1_c1":    1.5,
	"warm_call_cpu_over_proxy_1x64_c32":      0.95,
	"warm_call_tls_cpu_over_proxy_1x64_c32":  0.95,
	"warm_call_p50_over_proxy_8x1_c1":        2.25,
	"scheduler_cpu_us_per_warm_call_8x1_c32": 5,

	"throughput_64_functions_over_1":   0.95,
	"throughput_1000_clients_over_100": 0.95,
}

// Verdict says whether the median of a figure with a bar meets it; empty without one.
func (f Figure) Verdict() string {
	bar, ok := bars[f.Name]
	switch {
	case !ok:
		return ""
	case f.Higher:
		return fmt.Sprintf("goal >= %v  %s", bar, verdict(f.Median >= bar))
	}
	return fmt.Sprintf("goal <= %v  %s", bar, verdict(f.Median <= bar))
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}
