package cluster

import (
	"math"
	"testing"
	"time"
)

// erlangC is the mean wait in M/M/c, in units of the mean service time, for an
// offered load of so many Erlangs: what queueing theory says about a fixed pool.
func erlangC(servers int, load float64) float64 {
	blocking := 1.0 // Erlang B by its recursion
	for n := 1; n <= servers; n++ {
		blocking = load * blocking / (float64(n) + load*blocking)
	}
	waits := blocking / (1 - load/float64(servers)*(1-blocking))
	return waits / (float64(servers) - load)
}

func TestPoolsWaitAsQueueingTheorySays(t *testing.T) {
	if got := erlangC(1, .5); math.Abs(got-1) > 1e-9 {
		t.Fatalf("M/M/1 at 0.5 waits for %v, want 1", got)
	}
	const mean = 100 * ms
	for name, c := range map[string]struct {
		servers int
		load    float64
		work    Distribution
		want    float64 // mean wait in units of the mean work
	}{
		"M/M/1":  {1, 0.7, Exponential(mean), erlangC(1, 0.7)},
		"M/M/5":  {5, 4, Exponential(mean), erlangC(5, 4)},
		"M/M/20": {20, 17, Exponential(mean), erlangC(20, 17)},
		// Pollaczek and Khinchine: half of that of M/M/1.
		"M/D/1": {1, 0.7, Fixed(mean), erlangC(1, 0.7) / 2},
	} {
		// The pool is there before the first call, so that nothing is left of its
		// start.
		r := run(t, Config{
			Seed:      7,
			Functions: []Function{{Work: c.work, Limits: minOf(c.servers)}},
			Loads:     []Load{Poisson{Rate: c.load / mean.Seconds(), From: time.Second, Until: 3 * time.Hour}},
			Decider:   FixedPool(c.servers),
		})
		got := r.Total.Wait.Mean().Seconds() / mean.Seconds()
		if math.Abs(got/c.want-1) > 0.06 {
			t.Errorf("%s: %d calls waited for %.3f times their work, want %.3f", name, r.Total.Calls, got, c.want)
		}
		if used := r.Total.Busy.Seconds() / (r.Total.Busy + r.Total.Idle).Seconds(); math.Abs(used*float64(c.servers)/c.load-1) > 0.02 {
			t.Errorf("%s: %.3f of the instances' time was busy, want %.3f", name, used, c.load/float64(c.servers))
		}
	}
}
