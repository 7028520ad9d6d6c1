package main

import (
	"time"

	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// predict is the mean slowdown that the model of a node has for a trace. Each call waits for the
// platform first: as long as a call takes that computes nothing.
func predict(p policy, t trace, platform time.Duration) (float64, error) {
	var calls []node.Call
	for _, c := range t.calls {
		calls = append(calls, node.Call{
			Arrival: c.at, Function: c.function,
			Phases: []node.Phase{{Kind: node.Sleep, Length: platform + c.sleep}, {Kind: node.Compute, Length: c.cpu}},
		})
	}
	results, err := node.Run(1, calls, p.model())
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i, r := range results {
		sum += r.Turnaround().Seconds() / (t.calls[i].cpu + t.calls[i].sleep).Seconds()
	}
	return sum / float64(len(results)), nil
}

// model is the policy's of the model.
func (p policy) model() node.Policy {
	switch {
	case p.filter:
		return node.PublishedFilter()
	case p.order == "":
		return node.Sharing{}
	}
	params := callorder.DefaultParams(1)
	params.Order, params.Slice = p.order, p.slice
	return node.Tickets{Params: params}
}
