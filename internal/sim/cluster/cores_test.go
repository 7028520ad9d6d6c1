package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// ordered is one node on which calls ask for cores, and functions with the same number of warm instances each.
func ordered(cores float64, order callorder.Params, each int, calls Given, functions ...Function) Config {
	for i := range functions {
		functions[i].Requests, functions[i].Limits = pods(1), minOf(each)
		if functions[i].Demand == (Demand{}) {
			functions[i].Demand = Demand{CPU: 1}
		}
	}
	return Config{
		Nodes:     []Nodes{{Count: 1, Allocatable: pods(100), Capacity: Demand{CPU: cores}, Order: &order}},
		Functions: functions, Loads: []Load{calls}, Decider: autoscaler.Horizon,
	}
}

// near says that two durations are the same for a histogram of two digits.
func near(got, want time.Duration) bool { return (got - want).Abs() <= ms+want/100 }

func inOrder(order callorder.Order) callorder.Params {
	p := callorder.DefaultParams(1)
	p.Order, p.Preempt, p.Slice = order, false, callorder.Slice{Rule: callorder.SliceOff}
	return p
}

// Three calls of a second ask for the one core. They compute one after the other, and their
// execution is what they compute.
func TestCallsTakeTurnsOnACore(t *testing.T) {
	from := time.Second
	c := ordered(1, inOrder(callorder.FIFO), 3, at(from, from, from), Function{Work: Fixed(time.Second)})
	for _, c.Gateways = range []int{0, 1} {
		r := run(t, c)
		if got := r.Functions[0].Execution; got.Count() != 3 || !near(got.Max(), time.Second) {
			t.Errorf("%d gateways: %d executions, the longest took %v; want 3 of 1s", c.Gateways, got.Count(), got.Max())
		}
		if r.LastAnswer != from+3*time.Second {
			t.Errorf("%d gateways: the last answer came at %v, want 4s", c.Gateways, r.LastAnswer)
		}
	}
	c.Gateways = 0
	r := run(t, c)
	if got := r.Total.CoreWait; got.Count() != 3 || !near(got.Mean(), time.Second) || !near(got.Max(), 2*time.Second) {
		t.Errorf("%d waited %v for a core, at most %v; want 3, 1s, 2s", got.Count(), got.Mean(), got.Max())
	}
	if got := r.Total.Wait.Max(); got > ms {
		t.Errorf("a call waited %v for an instance, want none", got)
	}
}

// While a long call computes, another long one asks, and then a short one of a function whose
// size is known. The order decides which goes first.
func TestTheOrderDecides(t *testing.T) {
	for order, want := range map[callorder.Order]time.Duration{callorder.FIFO: 1800 * ms, callorder.SEPT: 800 * ms} {
		calls := Given{
			{At: 1000 * ms, Function: 0, Work: time.Second}, {At: 3000 * ms, Function: 1, Work: 10 * ms}, // both are learnt
			{At: 4000 * ms, Function: 0, Work: time.Second}, {At: 4100 * ms, Function: 0, Work: time.Second},
			{At: 4200 * ms, Function: 1, Work: 10 * ms},
		}
		r := run(t, ordered(1, inOrder(order), 2, calls, Function{}, Function{}))
		if got := r.Functions[1].CoreWait.Max(); !near(got, want) {
			t.Errorf("%s: the short call waited %v for a core, want %v", order, got, want)
		}
	}
}

// A call that outlives its slice computes on what the others leave: nothing while one has the only core.
func TestLowCallsGetWhatIsLeft(t *testing.T) {
	p := inOrder(callorder.FIFO)
	p.Slice = callorder.Slice{Rule: callorder.SliceFixed, Length: 100 * ms}
	calls := Given{{At: time.Second, Function: 0, Work: time.Second}, {At: 1500 * ms, Function: 1, Work: 50 * ms}}
	r := run(t, ordered(1, p, 1, calls, Function{}, Function{}))
	if got := r.Functions[1].Execution.Max(); !near(got, 50*ms) {
		t.Errorf("the short call took %v, want 50ms: the long one was low", got)
	}
	if got := r.Functions[0].Execution.Max(); !near(got, 1050*ms) {
		t.Errorf("the long call took %v, want 1.05s: it stood still for the short one only", got)
	}
	// With half a core left, the low call goes on at half its speed.
	c := ordered(1.5, p, 1, calls, Function{}, Function{})
	if got := run(t, c).Functions[0].Execution.Max(); !near(got, 1025*ms) {
		t.Errorf("with half a core left the long call took %v, want 1.025s", got)
	}
}

// A call that needs no core gives its place to another one after two samples.
func TestSleepingCallsGiveTheirCore(t *testing.T) {
	from := time.Second
	calls := Given{{At: from, Function: 0, Work: time.Minute}, {At: from + ms, Function: 1, Work: 100 * ms}}
	r := run(t, ordered(1, callorder.DefaultParams(1), 1, calls, Function{Demand: Demand{IO: 1}}, Function{}))
	if got := r.Functions[1].CoreWait.Max(); got < 5*ms || got > 20*ms {
		t.Errorf("the call waited %v for the core of one that sleeps, want about 10ms", got)
	}
}

func TestAnImpossibleOrderIsRefused(t *testing.T) {
	unknown := callorder.DefaultParams(1)
	unknown.Order = "lifo"
	for want, c := range map[string]Config{
		"at least 1":      ordered(0, callorder.DefaultParams(1), 1, nil, Function{}),
		"lifo":            ordered(1, unknown, 1, nil, Function{}),
		"use one of both": ordered(1, callorder.DefaultParams(1), 1, nil, Function{}),
	} {
		if want == "use one of both" {
			c.Hash = &Hash{Controllers: 1, Slots: 1}
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}

// In overload, instances beyond those that have cores would only hold calls in the low band.
func TestHorizonOrdersHardlyMoreInstancesThanCoresCanUse(t *testing.T) {
	const cores = 4
	order := callorder.DefaultParams(cores)
	c := Config{
		Nodes:     []Nodes{{Count: 1, Allocatable: pods(10000), Capacity: Demand{CPU: cores}}},
		Functions: []Function{{Requests: pods(1), Demand: Demand{CPU: 1}, Work: Exponential(50 * ms), Start: Fixed(500 * ms)}},
		Loads:     []Load{Poisson{Rate: 1.5 * cores / .05, Until: 15 * time.Second}}, Decider: autoscaler.Horizon,
	}
	shared := run(t, c)
	c.Nodes[0].Order = &order
	for _, c.Gateways = range []int{0, 1} {
		asked := run(t, c)
		if shared.Total.Created < 200 || asked.Total.Created > 15*cores {
			t.Errorf("%d gateways: %d instances were created where calls share the cores, %d where they ask", c.Gateways, shared.Total.Created, asked.Total.Created)
		}
	}
}
