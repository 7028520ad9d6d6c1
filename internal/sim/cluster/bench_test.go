package cluster

import (
	"runtime"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// One function under a steady load.
func BenchmarkCalls(b *testing.B) {
	calls := 0
	for b.Loop() {
		calls += run(b, burst(1, FixedPool(14))).Total.Calls
	}
	b.ReportMetric(float64(calls)/b.Elapsed().Seconds(), "calls/s")
}

// A hundred thousand nodes and a million functions, of which most are idle.
func BenchmarkManyNodesAndFunctions(b *testing.B) {
	c := Config{
		Seed: 1, Length: 5 * time.Second,
		Nodes: []Nodes{{Count: 100_000, Allocatable: placement.Amount{MilliCPU: 16_000, Memory: 64 << 30, Pods: 110}}},
		Functions: []Function{{
			Copies: 1_000_000, Requests: placement.Amount{MilliCPU: 100, Memory: 256 << 20, Pods: 1},
			Work: Exponential(100 * ms), Start: LogNormal(500*ms, 2*time.Second),
		}},
		Loads:   []Load{Poisson{Functions: 1_000_000, Rate: 2_000}, Poisson{Functions: 1_000, Rate: 20_000}},
		Decider: autoscaler.Horizon,
	}
	var memory uint64
	for b.Loop() {
		w := build(c)
		w.run()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		memory = stats.HeapAlloc
		runtime.KeepAlive(w)
	}
	b.ReportMetric(c.Length.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "simulated-s/s")
	b.ReportMetric(float64(memory>>20), "MB")
}
