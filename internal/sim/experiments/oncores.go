package experiments

import (
	"math"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// nodePolicy is a policy of a node with the name that reports give it.
type nodePolicy struct {
	name string
	node.Policy
}

// onNode runs calls that this package made.
func onNode(cores int, calls []node.Call, p node.Policy) []node.Result {
	results, err := node.Run(cores, calls, p)
	if err != nil {
		panic(err)
	}
	return results
}

// ticketParams are Windlass's defaults in the order, without slices and preemption: a call
// that has begun keeps its core.
func ticketParams(cores int, order callorder.Order) callorder.Params {
	p := callorder.DefaultParams(cores)
	p.Order, p.Preempt, p.Slice = order, false, callorder.Slice{Rule: callorder.SliceOff}
	return p
}

// knownWork is the mean work of each function, by name.
func knownWork(calls []node.Call) map[string]time.Duration {
	sums, counts := map[string]time.Duration{}, map[string]time.Duration{}
	for _, c := range calls {
		sums[c.Function] += c.CPU()
		counts[c.Function]++
	}
	for name := range sums {
		sums[name] /= counts[name]
	}
	return sums
}

// seconds makes a figure in seconds of one that is a duration.
func seconds(of func(node.Result) time.Duration) func(node.Result) float64 {
	return func(r node.Result) float64 { return of(r).Seconds() }
}

// meanBy is the mean of a figure of calls.
func meanBy(results []node.Result, of func(node.Result) float64) float64 {
	return statsOf(results, of).mean
}

// quantileBy is a quantile of a figure of calls: the value below which that share of them is.
func quantileBy(results []node.Result, q float64, of func(node.Result) float64) float64 {
	values := make([]float64, len(results))
	for i, r := range results {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// shareBy is which part of calls is so.
func shareBy(results []node.Result, is func(node.Result) bool) float64 {
	return meanBy(results, func(r node.Result) float64 {
		if is(r) {
			return 1
		}
		return 0
	})
}

// among are the results of some of the calls.
func among(calls []node.Call, results []node.Result, is func(node.Call) bool) []node.Result {
	var some []node.Result
	for i, r := range results {
		if is(calls[i]) {
			some = append(some, r)
		}
	}
	return some
}

// geometric is the geometric mean of values.
func geometric(values []float64) float64 {
	return math.Exp(statsOf(values, math.Log).mean)
}
