package cluster

import (
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/internal/workload"
)

// Call is a call that is due.
type Call struct {
	// At is when, from the start.
	At time.Duration
	// Function is which function.
	Function int
	// Work is how long it takes on an instance; less than 0 is drawn from
	// Function.Work.
	Work time.Duration
}

// OwnWork as a call's Work is drawn from Function.Work.
const OwnWork time.Duration = -1

// Load is an open loop: its calls come regardless of their results.
type Load interface {
	// Calls begins the load again. The returned function yields one call after the other, in
	// order of time, until it returns false. All randomness must come from rng.
	Calls(rng *rand.Rand) func() (Call, bool)
	// validate returns an error if the load is invalid for that number of functions.
	validate(functions int) error
	// endless tells whether the calls never end.
	endless() bool
}

// Poisson calls one of some functions, each as often as the others, at random times.
type Poisson struct {
	// First is the function, or the first of Functions many; 0 counts as 1.
	First     int
	Functions int
	// Rate is the mean number of calls in a second, of all functions together, more
	// than 0.
	Rate float64
	// From and Until are when it begins and ends; an Until of 0 is never.
	From, Until time.Duration
}

// Calls implements Load.
func (p Poisson) Calls(rng *rand.Rand) func() (Call, bool) {
	at := p.From.Seconds()
	return func() (Call, bool) {
		at += rng.ExpFloat64() / p.Rate
		if p.Until > 0 && at >= p.Until.Seconds() {
			return Call{}, false
		}
		c := Call{At: time.Duration(at * float64(time.Second)), Function: p.First, Work: OwnWork}
		if p.Functions > 1 {
			c.Function += rng.IntN(p.Functions)
		}
		return c, true
	}
}

// Given is a list of calls in order of time.
type Given []Call

// Calls implements Load.
func (g Given) Calls(*rand.Rand) func() (Call, bool) {
	next := 0
	return func() (Call, bool) {
		if next == len(g) {
			return Call{}, false
		}
		next++
		return g[next-1], true
	}
}

// Trace is a trace's calls.
type Trace struct {
	workload.Trace
	// Functions are the numbers of the functions by the trace's ids.
	Functions map[string]int
}

// Calls implements Load.
func (t Trace) Calls(*rand.Rand) func() (Call, bool) {
	next := 0
	return func() (Call, bool) {
		if next == len(t.Arrivals) {
			return Call{}, false
		}
		a := &t.Arrivals[next]
		next++
		return Call{At: a.At, Function: t.Functions[a.Function], Work: a.Duration}, true
	}
}
