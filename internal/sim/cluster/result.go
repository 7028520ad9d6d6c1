package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// Result is what a simulation found.
type Result struct {
	// Length is when the simulation ended, and LastAnswer when the last call was
	// answered.
	Length     time.Duration
	LastAnswer time.Duration
	// Functions are the results by Config.Functions, copies together, and Total is
	// their sum.
	Functions []FunctionResult
	Total     FunctionResult
	// Slowdown is the time until a call was answered as a multiple of its work. Work of less
	// than a millisecond counts as a millisecond.
	Slowdown Ratios
	// Nodes are the machines one by one.
	Nodes []NodeResult
	// Series are points in time; see Config.Resolution.
	Series []Point
	// Peak is the highest number of instances at a time, starting ones included.
	Peak int
	// Gateways is what gateways did; zero if there are none.
	Gateways GatewayResult
	// Decisions and Events are how many decisions were made and how many events
	// happened.
	Decisions int
	Events    int
}

// GatewayResult is what all gateways did together.
type GatewayResult struct {
	// ByLoan calls were handed over without the scheduler; an instance claimed the others with
	// their tickets. Tickets is how many tickets were sent, also of calls that a loan was free
	// for first.
	ByLoan, Tickets int
	// Recalled is how many places the scheduler recalled, and Declined how many calls crossed
	// their credit on its way back.
	Recalled, Declined int
}

// FunctionResult is the result for a function, or for several.
type FunctionResult struct {
	// Calls were made. Each is Answered, Refused because there was no room or too
	// many waited, Expired because its caller lost patience, or Open in the end.
	Calls, Answered, Refused, Expired, Open int
	// Cold calls were run by an instance that was not ready when they came.
	Cold int
	// Created instances were launched. Of them, Cancelled were cancelled before they were
	// ready, Left because they were idle, and Evicted to make room for others.
	Created, Cancelled, Left, Evicted int
	// Wait is how long calls waited for an instance, Setup the time from the call
	// until its work began, and Execution what its work took.
	Wait, Setup, Execution Histogram
	// CoreWait is how long calls waited for a core once they had an instance, where they ask
	// for one; Setup has it, and Wait does not.
	CoreWait Histogram
	// Starting, Idle and Busy are instance-times, summed up. Time that a busy
	// instance spends with the platform's overheads is busy.
	Starting, Idle, Busy time.Duration
}

// InstanceTime is how long instances held their place, summed up.
func (r FunctionResult) InstanceTime() time.Duration { return r.Starting + r.Idle + r.Busy }

// Throughput is how many calls were answered in a second, up to the last answer.
func (r Result) Throughput() float64 {
	if r.LastAnswer <= 0 {
		return 0
	}
	return float64(r.Total.Answered) / r.LastAnswer.Seconds()
}

// NodeResult is the result for a node.
type NodeResult struct {
	// Created instances were launched there, and Peak existed at a time.
	Created, Peak int
	// Busy is instance-time, summed up.
	Busy time.Duration
	// Used is what calls used of the capacity that they share, times seconds.
	Used Demand
	// Joined is when the node joined.
	Joined time.Duration

	now int
}

// Point is the state at a time.
type Point struct {
	At time.Duration
	// Instances are those that are ready, and Starting those that are not.
	Instances, Starting int
	// Waiting calls, and Busy instances.
	Waiting, Busy int
	// Answered calls since the start.
	Answered int
}

func newFunctionResult(digits int) FunctionResult {
	return FunctionResult{Wait: newHistogram(digits), Setup: newHistogram(digits), Execution: newHistogram(digits), CoreWait: newHistogram(digits)}
}

// began takes note of a call whose work begins.
func (r *Result) began(c *call, wait, setup time.Duration) {
	f := c.function.result
	f.Wait.record(wait)
	f.Setup.record(setup)
	r.Total.Wait.record(wait)
	r.Total.Setup.record(setup)
	if c.instance.computer != nil {
		f.CoreWait.record(c.coreWait)
		r.Total.CoreWait.record(c.coreWait)
	}
	if c.instance.ready > c.arrived {
		f.Cold++
	}
}

// ended takes note of a call whose work ends.
func (r *Result) ended(c *call) {
	c.function.result.Execution.record(c.took)
	r.Total.Execution.record(c.took)
}

// answered takes note of a call that has its answer.
func (r *Result) answered(c *call, now time.Duration) {
	c.function.result.Answered++
	r.LastAnswer = now
	r.Slowdown.recordRatio(float64(now-c.arrived) / float64(max(c.work, time.Millisecond)))
}

// letGo counts an instance that the scheduler ends.
func (r *FunctionResult) letGo(why core.TerminateReason) {
	if why == core.BecauseEvicted {
		r.Evicted++
	} else {
		r.Left++
	}
}

// add adds what another one has counted, histograms aside.
func (r *FunctionResult) add(o FunctionResult) {
	r.Calls += o.Calls
	r.Answered += o.Answered
	r.Refused += o.Refused
	r.Expired += o.Expired
	r.Open += o.Open
	r.Cold += o.Cold
	r.Created += o.Created
	r.Cancelled += o.Cancelled
	r.Left += o.Left
	r.Evicted += o.Evicted
	r.Starting += o.Starting
	r.Idle += o.Idle
	r.Busy += o.Busy
}
