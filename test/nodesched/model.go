package main

import (
	"time"

	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// predict is the turnaround that the model of a node has for each call of a trace. Each waits for
// the platform first: as long as a call takes that computes nothing.
func predict(p policy, t trace, platform time.Duration) ([]time.Duration, error) {
	var calls []node.Call
	for _, c := range t.calls {
		calls = append(calls, node.Call{
			Arrival: c.at, Function: c.function,
			Phases: []node.Phase{{Kind: node.Sleep, Length: platform + c.sleep}, {Kind: node.Compute, Length: c.cpu}},
		})
	}
	results, err := node.Run(1, calls, p.model())
	if err != nil {
		return nil, err
	}
	turnarounds := make([]time.Duration, len(results))
	for i, r := range results {
		turnarounds[i] = r.Turnaround()
	}
	return turnarounds, nil
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
