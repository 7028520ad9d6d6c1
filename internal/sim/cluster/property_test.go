package cluster

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

func minOf(n int) autoscaler.Limits { return autoscaler.Limits{Min: n} }

// drawConfig draws a small world in which everything may happen.
func drawConfig(t *rapid.T) Config {
	within := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	span := func(what string, most time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, what))
	}
	deciders := []autoscaler.Decider{autoscaler.FPCSch, autoscaler.OpenWhisk, autoscaler.Horizon, FixedPool(3)}
	c := Config{
		Seed:       rapid.Uint64().Draw(t, "seed"),
		Length:     time.Minute,
		Decider:    rapid.SampledFrom(deciders).Draw(t, "decider"),
		Resolution: time.Second,
	}
	for range within("node groups", 1, 2) {
		c.Nodes = append(c.Nodes, Nodes{
			Count: within("nodes", 1, 3), Allocatable: pods(int64(within("pods", 1, 4))),
			From: span("from", 2*time.Second), Starts: within("starts", 0, 2),
			Capacity: Demand{CPU: float64(within("cpu", 0, 2))},
		})
	}
	for range within("functions", 1, 3) {
		f := Function{
			Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
			Copies:    within("copies", 1, 3), Requests: pods(1), Concurrency: within("concurrency", 1, 3),
			Work: Exponential(span("work", 300*ms)), Start: Uniform(0, span("start", time.Second)),
			Demand: Demand{CPU: float64(within("demand", 0, 1))}, Learns: rapid.Bool().Draw(t, "learns"),
			BackoffAfter: 1 + span("backoff", time.Second), IdleTimeout: 1 + span("idle", 5*time.Second), KeepLast: 1 + span("last", 10*time.Second),
			Patience: rapid.SampledFrom([]time.Duration{0, 50 * ms, time.Second}).Draw(t, "patience"),
		}
		f.Limits = autoscaler.Limits{Min: within("min", 0, 1), Max: within("max", 0, 4)}
		c.Functions = append(c.Functions, f)
	}
	c.Loads = []Load{Poisson{Rate: float64(within("rate", 1, 20)), Until: 40 * time.Second}}
	c.Clients = []Clients{{Count: within("clients", 1, 10), Think: Exponential(20*ms + span("think", time.Second)), Calls: 500}}
	if rapid.IntRange(0, 3).Draw(t, "push") == 0 {
		c.Hash = &Hash{Controllers: 2, Slots: 2}
		c.Nodes[0].From = 0
		return c
	}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Capacity.CPU > 0 && rapid.Bool().Draw(t, "ordered") {
			p := callorder.DefaultParams(1)
			p.Order = rapid.SampledFrom(callorder.Orders()).Draw(t, "order")
			n.Order = &p
		}
	}
	c.Gateways = rapid.IntRange(0, 3).Draw(t, "gateways")
	if c.Gateways > 0 {
		c.MessageDelay = rapid.SampledFrom([]time.Duration{0, ms, MaxMessageDelay}).Draw(t, "delay")
	}
	return c
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		decided := 0
		c.Observe = func(_ time.Duration, _ int, s autoscaler.Snapshot, d autoscaler.Decision) {
			decided++
			if s.Waiting() < 0 || s.Busy > s.Created || s.Stale > s.Waiting() || d.Create < 0 || d.Cancel > s.Creating {
				t.Fatalf("snapshot %+v, decision %+v", s, d)
			}
		}
		r, err := Run(c)
		if err != nil {
			t.Fatal(err)
		}
		if decided != r.Decisions {
			t.Fatalf("%d decisions were observed of %d", decided, r.Decisions)
		}
		checkTotals(t, c, r)
		checkNodes(t, c, r)
		if again, _ := Run(c); !reflect.DeepEqual(r, again) {
			t.Fatal("the same Config had another Result")
		}
	})
}

// checkTotals checks that nothing gets lost, and that instances are accounted for
// all the time that they exist.
func checkTotals(t *rapid.T, c Config, r Result) {
	f := r.Total
	if f.Open < 0 || f.Answered > f.Setup.Count() || f.Calls < f.Wait.Count()+f.Refused+f.Expired {
		t.Fatalf("calls do not add up: %+v", f)
	}
	if f.Cancelled+f.Left+f.Evicted > f.Created {
		t.Fatalf("instances do not add up: %+v", f)
	}
	for _, p := range r.Series {
		if p.Waiting < 0 || p.Busy > p.Instances || p.Starting < 0 {
			t.Fatalf("point %+v", p)
		}
	}
	if c.Hash != nil {
		return
	}
	most, bound := 0, true
	for _, f := range c.Functions {
		most += f.Copies * f.Limits.Max
		bound = bound && f.Limits.Max > 0
	}
	if bound && r.Peak > most {
		t.Fatalf("%d instances at a time, of at most %d", r.Peak, most)
	}
}

func checkNodes(t *rapid.T, c Config, r Result) {
	i := 0
	var busy time.Duration
	for _, group := range nodesInOrder(c.Nodes) {
		for range group.Count {
			most := int(group.Allocatable.Pods)
			if c.Hash != nil {
				most = c.Hash.Slots
			}
			if r.Nodes[i].Peak > most {
				t.Fatalf("node %d had %d instances in room for %d", i, r.Nodes[i].Peak, most)
			}
			busy += r.Nodes[i].Busy
			i++
		}
	}
	if busy != r.Total.Busy {
		t.Fatalf("nodes were busy for %v, functions for %v", busy, r.Total.Busy)
	}
}

// nodesInOrder are the groups of nodes in the order in which they join.
func nodesInOrder(groups []Nodes) []Nodes {
	ordered := append([]Nodes(nil), groups...)
	if len(ordered) == 2 && ordered[0].From > ordered[1].From {
		ordered[0], ordered[1] = ordered[1], ordered[0]
	}
	return ordered
}
