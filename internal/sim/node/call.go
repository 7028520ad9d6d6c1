package node

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what a call needs for a phase.
type Kind int

// Kinds of phases.
const (
	// Compute needs a core.
	Compute Kind = iota
	// Sleep needs nothing but time.
	Sleep
	// Share needs the node's shared resource, which all calls that need it share. It is not
	// a core.
	Share
)

// Phase is a part of a call.
type Phase struct {
	Kind   Kind
	Length time.Duration
}

// Call is a call of a function.
type Call struct {
	Arrival time.Duration
	// Function names its function, and Namespace whose it is.
	Namespace, Function string
	// Phases are what it does, one after the other; none has a negative length.
	Phases []Phase
	// Rest is what its process computes once it has answered: nobody waits for that but those who share the core.
	Rest time.Duration
}

// Computing is a call that does nothing but compute.
func Computing(arrival time.Duration, function string, work time.Duration) Call {
	return Call{Arrival: arrival, Function: function, Phases: []Phase{{Compute, work}}}
}

func (c Call) check() error {
	if len(c.Phases) == 0 || c.Alone() <= 0 {
		return errors.New("takes no time")
	}
	for _, p := range c.Phases {
		if p.Length < 0 {
			return fmt.Errorf("has a phase of %s; it must not be negative", p.Length)
		}
	}
	if c.Rest < 0 {
		return fmt.Errorf("has a rest of %s; it must not be negative", c.Rest)
	}
	return nil
}

// CPU is how long the call computes.
func (c Call) CPU() time.Duration { return c.total(Compute) }

// Alone is how long the call takes if it is alone.
func (c Call) Alone() time.Duration { return c.total(Compute) + c.total(Sleep) + c.total(Share) }

func (c Call) total(of Kind) time.Duration {
	var sum time.Duration
	for _, p := range c.Phases {
		if p.Kind == of {
			sum += p.Length
		}
	}
	return sum
}

// Result is what became of a call.
type Result struct {
	Arrival time.Duration
	// Began is when it first got a part of a core, or began to do something that needs none.
	Began, Ended time.Duration
	// CPU and Alone are those of the call.
	CPU, Alone time.Duration
}

// Response is how long the call waited before it began.
func (r Result) Response() time.Duration { return r.Began - r.Arrival }

// Execution is how long the call took from when it began: what is billed.
func (r Result) Execution() time.Duration { return r.Ended - r.Began }

// Turnaround is how long its caller waited.
func (r Result) Turnaround() time.Duration { return r.Ended - r.Arrival }

// Slowdown is the turnaround beside that of the call alone.
func (r Result) Slowdown() float64 { return float64(r.Turnaround()) / float64(r.Alone) }

// RunTimeEffectiveness is the part of its turnaround in which the call computed; the RTE of
// the SFS paper.
func (r Result) RunTimeEffectiveness() float64 { return float64(r.CPU) / float64(r.Turnaround()) }
