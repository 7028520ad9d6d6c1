package twin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/sim/cluster"
)

// load is calls of one function. Its times are odd, so that nothing happens at the
// time of a tick, where the order would be chance.
type load struct {
	calls       []time.Duration
	work, start time.Duration
	length      time.Duration
}

// order is so many instances that were ordered at one time, or taken back if n is
// negative.
type order struct {
	at time.Duration
	n  int
}

func (o order) String() string { return fmt.Sprintf("%d at %v", o.n, o.at) }

// note adds n instances that were ordered at a time.
func note(orders []order, at time.Duration, n int) []order {
	if last := len(orders) - 1; last >= 0 && orders[last].at == at {
		orders[last].n += n
		return orders
	}
	return append(orders, order{at, n})
}

var (
	node     = nodepick.Amount{MilliCPU: 6_000, Memory: 1 << 50}
	requests = nodepick.Amount{MilliCPU: 100, Memory: 64 << 20}
)

// playSimulated is playReal in the simulator.
func playSimulated(t *testing.T, l load, decider string) (orders []order) {
	decide, _ := fpcs.ByName(decider)
	var calls cluster.Given
	for _, at := range l.calls {
		calls = append(calls, cluster.Call{At: at, Work: cluster.OwnWork})
	}
	created := 0
	_, err := cluster.Run(cluster.Config{
		Length: l.length, Decider: decide,
		Nodes: []cluster.Nodes{{Count: 1, Allocatable: node}},
		Functions: []cluster.Function{{
			Namespace: "ns", Requests: requests, Work: cluster.Fixed(l.work), Start: cluster.Fixed(l.start),
		}},
		Loads: []cluster.Load{calls},
		Observe: func(now time.Duration, _ int, s fpcs.Snapshot, d fpcs.Decision) {
			if n := min(d.Create, s.Room) - d.Withdraw; n != 0 {
				orders = note(orders, now, n)
				created += max(0, n)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if created == 0 {
		t.Fatal("nothing was ordered")
	}
	return orders
}

func TestTheSimulatorOrdersWhatTheSchedulerOrders(t *testing.T) {
	const odd = 17 * time.Nanosecond
	for _, l := range []struct {
		name        string
		rate, until float64
		work, start time.Duration
	}{
		{"short calls and a long start", 200, 8, 20*time.Millisecond + odd, 3*time.Second + 13*time.Millisecond + odd},
		{"long calls and a short start", 20, 8, 700*time.Millisecond + odd, 213*time.Millisecond + odd},
		{"more calls than the node can run", 100, 8, time.Second + odd, time.Second + 13*time.Millisecond + odd},
		{"calls that stop before anything has started", 100, 1, 200*time.Millisecond + odd, 4*time.Second + 13*time.Millisecond + odd},
	} {
		for _, decider := range fpcs.Names() {
			t.Run(l.name+"/"+decider, func(t *testing.T) {
				for seed := range uint64(5) {
					played := load{work: l.work, start: l.start, length: 12*time.Second + odd}
					rng := rand.New(rand.NewPCG(seed, 1))
					for at := rng.Float64() / 5; at < l.until; at += rng.ExpFloat64() / l.rate {
						played.calls = append(played.calls, time.Duration(at*1e9))
					}
					want, got := playReal(t, played, decider), playSimulated(t, played, decider)
					if !slices.Equal(got, want) {
						t.Errorf("seed %d: the simulator ordered %v, the scheduler %v", seed, got, want)
					}
				}
			})
		}
	}
}
