package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Arrival is one call of one function.
type Arrival struct {
	// At is when the call is due, from the start of the trace, at least 0.
	At time.Duration
	// Function is the trace's own short id of the function.
	Function string
	// Duration is how long the function works on the call, at least 0.
	Duration time.Duration
}

// Trace is a sequence of calls.
type Trace struct {
	// Name says where the trace comes from.
	Name string
	// Length is the time that the trace covers; no call is due after it.
	Length time.Duration
	// Arrivals are sorted by At, then Function, then Duration.
	Arrivals []Arrival
	// Memory is how many bytes an instance of each function needs; nil if that was
	// not recorded.
	Memory map[string]int64
	// Notes say how the trace was made and what was changed since, one
	// sentence each, in order.
	Notes []string
}

// Validate reports the first arrival that breaks a promise of Trace.
func (t Trace) Validate() error {
	var last time.Duration
	for i, a := range t.Arrivals {
		switch {
		case a.At < last:
			return fmt.Errorf("workload: arrival %d of trace %q is due at %v, before its predecessor or the start; sort the arrivals", i, t.Name, a.At)
		case a.At > t.Length:
			return fmt.Errorf("workload: arrival %d of trace %q is due at %v, after the trace's length of %v", i, t.Name, a.At, t.Length)
		case a.Duration < 0:
			return fmt.Errorf("workload: arrival %d of trace %q has the negative duration %v", i, t.Name, a.Duration)
		case a.Function == "":
			return fmt.Errorf("workload: arrival %d of trace %q names no function", i, t.Name)
		}
		last = a.At
	}
	return nil
}

// Load is what a trace asks of a machine.
type Load struct {
	// Calls and Functions count calls and the functions that they call.
	Calls     int
	Functions int
	// Work is the sum of all durations.
	Work time.Duration
	// Cores is Work divided by the trace's length: CPU-seconds per second,
	// if a function computes for all of its duration.
	Cores float64
	// Peak is the largest number of calls that would run at a time if every
	// call began when it is due and nothing slowed it down.
	Peak int
}

// Load computes what the trace asks of a machine.
func (t Trace) Load() Load {
	l := Load{Calls: len(t.Arrivals)}
	functions := make(map[string]bool)
	ends := make([]time.Duration, 0, len(t.Arrivals))
	for _, a := range t.Arrivals {
		functions[a.Function] = true
		l.Work += a.Duration
		ends = append(ends, a.At+a.Duration)
	}
	l.Functions = len(functions)
	if t.Length > 0 {
		l.Cores = l.Work.Seconds() / t.Length.Seconds()
	}
	slices.Sort(ends)
	ended := 0
	for i, a := range t.Arrivals {
		for ended < len(ends) && ends[ended] <= a.At {
			ended++
		}
		l.Peak = max(l.Peak, i+1-ended)
	}
	return l
}

// DurationQuantile is the duration that the share q of the calls, 0 to 1, does
// not exceed (nearest rank); 0 for an empty trace.
func (t Trace) DurationQuantile(q float64) time.Duration {
	durations := make([]time.Duration, len(t.Arrivals))
	for i, a := range t.Arrivals {
		durations[i] = a.Duration
	}
	slices.Sort(durations)
	return Quantile(durations, q)
}

// Describe is the trace in a few lines for a person to read: its size, its
// load, its durations and its notes.
func (t Trace) Describe() []string {
	l := t.Load()
	lines := []string{
		fmt.Sprintf("trace %s: %d calls of %d functions in %v", t.Name, l.Calls, l.Functions, t.Length),
		fmt.Sprintf("offered load: %.2f CPU-seconds per second, at most %d calls at a time", l.Cores, l.Peak),
		fmt.Sprintf("durations: p50 %v, p90 %v, p99 %v, longest %v", rounded(t.DurationQuantile(.5)),
			rounded(t.DurationQuantile(.9)), rounded(t.DurationQuantile(.99)), rounded(t.DurationQuantile(1))),
	}
	return append(lines, t.Notes...)
}

// Quantile is the element of sorted that the share q of all elements, 0 to 1,
// does not exceed (nearest rank); 0 if there is none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	// The small number undoes the rounding of products such as 0.07 * 100,
	// which is a little more than 7.
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func sortArrivals(arrivals []Arrival) {
	slices.SortFunc(arrivals, func(a, b Arrival) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Duration, b.Duration))
	})
}
