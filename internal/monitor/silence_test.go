package monitor

import (
	"math"
	"slices"
	"testing"
)

func TestASilenceLeavesNoFalseRates(t *testing.T) {
	tells := func(second int) Reading {
		batch := with(hello, "node_name", "n1")
		return gateway(10*float64(second), 0).
			says("windlass_gateway_phase_seconds_total", float64(second), with(hello, "phase", "execute")...).
			says("windlass_node_busy", 1, "node_name", "n1").
			says("windlass_node_batch_cpu_seconds_total", 2*float64(second), batch...).reading("g")
	}
	other := process().reading("other")
	var w Watcher
	for second := range 60 {
		reading := tells(second)
		if second > 20 && second <= 40 {
			reading = Reading{Source: "g", Failed: "g does not answer"}
		}
		v := w.See(at(second, reading, other))
		if second < 2 {
			continue
		}
		f := helloOf(t, v)
		most := max(f.Rate, v.Totals.Rate, slices.Max(f.Recent), slices.Max(v.Totals.Recent))
		cores := 0.0
		if batch := v.Nodes[0].Order.Batch; batch != nil {
			cores = batch.Cores
		}
		if most > 10.001 || cores > 2.001 {
			t.Fatalf("after %d s there were up to %g calls a second, and %g cores of batch work", second, most, cores)
		}
		if second > 40 && (f.Rate < 9.999 || math.Abs(f.Phases[3].Mean-0.1) > 1e-9 || cores < 1.999) {
			t.Fatalf("after %d s the rate is %g, and %g cores do batch work; phases %+v", second, f.Rate, cores, f.Phases)
		}
	}
}
