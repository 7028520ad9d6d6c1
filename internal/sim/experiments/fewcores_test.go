package experiments

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/node"
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
