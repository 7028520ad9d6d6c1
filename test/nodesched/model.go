package main

import (
	"math"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
)

// idleWeight is the weight of a control group in the low band, beside that of a new one (WEIGHT_IDLEPRIO and NICE_0_LOAD in
// the kernel's sources).
const idleWeight = 3. / 1024

// predict is the turnaround that the model of a node has for each call of a trace.
func predict(p policy, t trace, on platform) ([]time.Duration, error) {
	var calls []node.Call
	for _, c := range t.calls {
		phases := []node.Phase{{Kind: node.Compute, Length: max(0, c.cpu-on.early)}}
		if c.sleep > 0 {
			phases = append([]node.Phase{{Kind: node.Sleep, Length: c.sleep}}, phases...)
		}
		calls = append(calls, node.Call{Arrival: c.at + on.before, Function: c.function, Phases: phases, Rest: min(c.cpu, on.early)})
	}
	results, err := node.Run(1, calls, p.model(on.slice))
	if err != nil {
		return nil, err
	}
	turnarounds := make([]time.Duration, len(results))
	for i, r := range results {
		turnarounds[i] = on.before + r.Turnaround() + on.after
	}
	return turnarounds, nil
}

// model is the policy's of the model, with that slice of the kernel.
func (p policy) model(slice time.Duration) node.Policy {
	kernel := node.Kernel{Slice: slice, Low: idleWeight}
	switch {
	case p.filter:
		sfs := node.PublishedFilter()
		sfs.Kernel = &kernel
		return sfs
	case p.order == "":
		return kernel
	}
	config := nodeagent.DefaultConfig(1)
	config.Calls.Order, config.Calls.Slice = p.order, p.slice
	return node.Tickets{Params: config.Calls, Kernel: &kernel, ExemptBelow: config.ExemptBelow}
}

// leastResponse is the mean response in seconds that no order of these calls on one core can be below: after each call's sleep, which
// needs no core, the call with the shortest rest computes.
func leastResponse(o outcome) float64 {
	var calls []node.Call
	sum := time.Duration(0)
	for _, r := range o.results {
		calls = append(calls, node.Call{Arrival: r.at + r.sleep, Function: r.function, Phases: []node.Phase{{Kind: node.Compute, Length: r.cpu}}})
		sum += r.sleep
	}
	results, err := node.Run(1, calls, node.Shortest{})
	if err != nil {
		return math.NaN() // a trace with such a call has not been replayed
	}
	for _, r := range results {
		sum += r.Turnaround()
	}
	return sum.Seconds() / float64(len(results))
}
