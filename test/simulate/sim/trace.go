package sim

import (
	"fmt"
	"time"
)

// TraceSink takes the lines of a trace; nil if nobody wants them.
type TraceSink func(line string)

// trace is all that happened, as a number or, if somebody listens, in words.
type trace struct {
	hash uint64
	sink TraceSink
}

// mix takes a number into the hash (FNV-1a, of 8 bytes at a time).
func (t *trace) mix(x uint64) {
	t.hash = (t.hash ^ x) * 0x100000001b3
	t.hash ^= t.hash >> 29
}

// note writes a line: who did what, and two numbers that say to what.
func (w *World) note(who, what string, a, b uint64) {
	t := &w.trace
	t.mix(uint64(w.now))
	t.mix(a)
	t.mix(b)
	for i := range len(what) {
		t.mix(uint64(what[i]))
	}
	if t.sink != nil {
		t.sink(fmt.Sprintf("%12.6f %-10s %s %d %d", w.now.Seconds(), who, what, a, b))
	}
}

// explain writes a line of a trace that somebody reads, and changes nothing else.
func (w *World) explain(who, what string) {
	if w.trace.sink != nil {
		w.trace.sink(fmt.Sprintf("%12.6f %-10s %s", w.now.Seconds(), who, what))
	}
}

// Counts counts what happened in one simulation or in many.
type Counts struct {
	Invocations int
	// Answered with the function's answer, or with an error that says that it
	// did not run, or that it may have.
	OK, No, Maybe int
	// Abandoned invocations had a client that went away, or a gateway that
	// died.
	Abandoned int
	// Executions that began.
	Executions int
	// ByLoan calls were handed over by a loan, and Alone answered while there was no scheduler.
	ByLoan, Alone int
	// GivenUp calls went from a busy node to a calm one before they began.
	GivenUp int
	// Faults by kind.
	Faults map[string]int
	// Steps that were looked at.
	Steps int
}

// Add adds what another simulation counted.
func (t *Counts) Add(other Counts) {
	t.Invocations += other.Invocations
	t.OK += other.OK
	t.No += other.No
	t.Maybe += other.Maybe
	t.Abandoned += other.Abandoned
	t.Executions += other.Executions
	t.ByLoan += other.ByLoan
	t.GivenUp += other.GivenUp
	t.Alone += other.Alone
	t.Steps += other.Steps
	if t.Faults == nil {
		t.Faults = make(map[string]int)
	}
	for kind, n := range other.Faults {
		t.Faults[kind] += n
	}
}

// Violation is a promise that was not held.
type Violation struct {
	// Rule names the promise.
	Rule Rule
	// Invocation is the number of the call that it happened to; 0 if none.
	Invocation int
	At         time.Duration
}

func (v Violation) String() string {
	return fmt.Sprintf("%s (invocation %d, at %v)", v.Rule, v.Invocation, v.At)
}

// Result is what came of a simulation.
type Result struct {
	Counts Counts
	// Hash is that of the trace.
	Hash uint64
	// Violation is the first one; nil if there was none.
	Violation *Violation
}

func (w *World) result() Result {
	w.counts.Steps = w.steps
	return Result{Counts: w.counts, Hash: w.trace.hash, Violation: w.violation}
}

// violate notes that a promise was broken. Nothing happens after the first time.
func (w *World) violate(rule Rule, callRecord int) {
	if w.violation == nil {
		w.violation = &Violation{Rule: rule, Invocation: callRecord, At: w.now}
		w.note("world", "VIOLATION: "+string(rule), uint64(callRecord), 0)
	}
}
