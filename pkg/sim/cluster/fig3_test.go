package cluster

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

func TestTry(t *testing.T) {
	for _, n := range []int{1, 4, 16, 64} {
		for _, p := range []string{"listing1", "horizon", "hash"} {
			c := Config{
				Seed:      1,
				Nodes:     []Nodes{{Count: 8, Allocatable: nodepick.Amount{Pods: 40}, Starts: 0}},
				Functions: []Function{{Copies: n, Requests: nodepick.Amount{Pods: 1}, Work: Fixed(2 * ms), Start: LogNormal(300*ms, 500*ms)}},
				Clients:   []Clients{{Count: 100, Functions: n, Calls: 100000}},
				Overheads: Overheads{Admit: 4 * ms, Claim: 5 * ms, Answer: 4 * ms, Pull: 1 * ms},
			}
			if d, ok := fpcs.ByName(p); ok {
				c.Decider = d
			} else {
				c.Hash = &Hash{Controllers: 3, Slots: 40}
			}
			begun := time.Now()
			r := run(t, c)
			t.Logf("%2d %-9s %6.0f/s created %d evicted %d cold %d refused %d setup %v p99 %v in %v", n, p, r.Throughput(), r.Total.Created, r.Total.Evicted, r.Total.Cold, r.Total.Refused, r.Total.Setup.Mean(), r.Total.Setup.Quantile(.99), time.Since(begun))
		}
	}
}
