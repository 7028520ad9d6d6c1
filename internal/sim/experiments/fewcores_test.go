package experiments

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// A node of a simulated cluster whose calls ask for cores does what the simulation of one node
// does: the two have no code in common but the product's.
func TestOrderedNodesAgreeWithOneNode(t *testing.T) {
	const cores, from = 2, time.Second
	sizes := []time.Duration{10 * time.Millisecond, 80 * time.Millisecond, 600 * time.Millisecond}
	for _, order := range []callorder.Order{callorder.FIFO, callorder.SEPT, callorder.SERPT, callorder.None} {
		r := rand.New(rand.NewPCG(5, 5))
		params := callorder.DefaultParams(cores)
		params.Order = order
		config := cluster.Config{
			Decider: decider("Horizon"),
			Nodes:   []cluster.Nodes{{Count: 1, Allocatable: placement.Amount{Pods: 10000}, Capacity: cluster.Demand{CPU: cores}, Order: &params}},
		}
		for range sizes {
			f := cluster.Function{Requests: placement.Amount{Pods: 1}, Demand: cluster.Demand{CPU: 1}}
			f.Limits.Min = 200
			config.Functions = append(config.Functions, f)
		}
		var given cluster.Given
		var calls []node.Call
		at := from
		for range 600 {
			at += time.Duration(r.ExpFloat64() * float64(120*time.Millisecond))
			f := r.IntN(len(sizes))
			given = append(given, cluster.Call{At: at, Function: f, Work: sizes[f]})
			calls = append(calls, node.Computing(at, fmt.Sprint(f), sizes[f]))
		}
		config.Loads = []cluster.Load{given}
		want := meanBy(onNode(cores, calls, node.Tickets{Params: params}), seconds(node.Result.Turnaround))
		within(t, string(order), responseOf(mustRun(config)), want, .02)
	}
}

// Calls that are pushed to the paper's nodes wait for the cores of their home, which has room for more of them than it has cores.
// Cold starts are the smaller part of what that costs: the same containers at once help little, and calls that go on to the next node once
// their home's cores are taken lose nothing.
func TestPushedCallsWaitAtFullHomes(t *testing.T) {
	s := zukClusterOver(Options{Seed: 1, Size: Size{Seeds: 1, Scale: 1}, Each: func(n int, do func(int)) {
		for i := range n {
			do(i)
		}
	}})
	cold, warm, spilling := s.response(4, zukPushed), s.response(4, zukPushedWarm), s.response(4, zukSpillingWarm)
	within(t, "spilling beside pulling", spilling, s.response(4, "none"), .02)
	if warm < 2*spilling || cold < warm {
		t.Errorf("four nodes answer in %.3f s with cold starts, in %.3f s without them, and in %.3f s if calls leave their home; "+
			"want it to be most of the difference that they do not", cold, warm, spilling)
	}
	found := map[string]report.Finding{}
	for _, f := range s.findings() {
		found[f.Name] = f
	}
	within(t, "the paper's ratio", found["three_nodes_fair_choice_to_four_pushed"].Value, s.response(3, "fair-choice")/cold, .001)
	homes, starts := found["four_pushed_longer_by_full_homes_s"].Value, found["four_pushed_longer_by_cold_starts_s"].Value
	within(t, "what both parts come to", homes+starts, cold-s.response(4, "none"), .001)
	within(t, "the part of full homes", homes, warm-s.response(4, "none"), .001)
	for i, c := range s.cells {
		if s.names[i%len(s.names)] == zukPushed && c.config(Options{Size: fewCores.Quick}, 1).Hash.Slots != 128 {
			t.Error("the paper's nodes have 32 GB for containers of 256 MB")
		}
	}
}
