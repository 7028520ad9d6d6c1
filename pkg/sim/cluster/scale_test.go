package cluster

import (
	"runtime"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

func TestScaleTry(t *testing.T) {
	c := Config{
		Seed:      1,
		Length:    60 * time.Second,
		Nodes:     []Nodes{{Count: 100_000, Allocatable: nodepick.Amount{MilliCPU: 16000, Memory: 64 << 30, Pods: 110}}},
		Functions: []Function{{Copies: 1_000_000, Requests: nodepick.Amount{MilliCPU: 100, Memory: 256 << 20, Pods: 1}, Work: Exponential(100 * ms), Start: LogNormal(500*ms, 2*time.Second)}},
		Loads:     []Load{Poisson{Functions: 1_000_000, Rate: 2000}, Poisson{Functions: 1000, Rate: 20000}},
		Decider:   fpcs.Listing1,
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	w := build(c)
	t.Logf("built in %v", time.Since(begun))
	w.run()
	took := time.Since(begun)
	runtime.GC()
	runtime.ReadMemStats(&after)
	r := w.finish()
	runtime.KeepAlive(w)
	t.Logf("%.1f simulated s per s, %d calls, %d created, %d events, %v, %d MB", c.Length.Seconds()/took.Seconds(), r.Total.Calls, r.Total.Created, r.Events, took, (after.HeapAlloc-before.HeapAlloc)>>20)
}
