package bench

import (
	"fmt"
	"slices"
	"time"
)

// Part is some of the programs of a path.
type Part string

// Parts of paths. Windlass up is one program, PartLocal.
const (
	PartFunction  Part = "function"
	PartProxy     Part = "proxy"
	PartLocal     Part = "windlass"
	PartGateway   Part = "gateway"
	PartScheduler Part = "scheduler"
	PartAgents    Part = "agents"
)

// Cost is what the programs of a part used during a measurement.
type Cost struct {
	// CPU is user and system time.
	CPU time.Duration
	// Switches are context switches, voluntary or not.
	Switches int64
	// Mallocs and Bytes were allocated on the heap. They are unknown, and Exports is false,
	// where programs were not asked for their metrics, and for those without: functions and
	// agents.
	Mallocs, Bytes int64
	Exports        bool
}

// Since is what was used since an earlier reading.
func (c Cost) Since(earlier Cost) Cost {
	return Cost{c.CPU - earlier.CPU, c.Switches - earlier.Switches, c.Mallocs - earlier.Mallocs, c.Bytes - earlier.Bytes, c.Exports}
}

// Measurement is what one step found.
type Measurement struct {
	Step
	// Calls were answered with 200, Failed otherwise or not at all; Failure says why for one.
	Calls, Failed int
	Failure       string
	// HungUp calls were given up by their clients, and MostRunning is how many calls an instance ran
	// at a time at most. Both are 0 unless clients hang up.
	HungUp, MostRunning int
	Took                time.Duration
	Costs               map[Part]Cost
	// Client is the CPU time of the process that made the calls. It is no part of the path.
	Client time.Duration
	// Latencies of answered calls. In an open loop they count from when a call was due, and
	// Late is the sender's own lateness, as a 99th percentile.
	P50, P90, P99, P999, Max, Late time.Duration
}

// perCall divides by the calls, also by those that were given up: programs worked for them, too.
func (m Measurement) perCall(total float64) float64 { return total / float64(m.Calls+m.HungUp) }

// cpu is the CPU time of a call in microseconds, without the function's.
func (m Measurement) cpu() float64 { return m.cpuOf(m.between()...) }

// cpuOf is the CPU time of a call in some parts, in microseconds.
func (m Measurement) cpuOf(parts ...Part) float64 {
	var sum time.Duration
	for _, part := range parts {
		sum += m.Costs[part].CPU
	}
	return m.perCall(float64(sum) / 1e3)
}

// client is the CPU time of a call in the process that makes it, in microseconds.
func (m Measurement) client() float64 { return m.perCall(float64(m.Client) / 1e3) }

// between are the parts between client and function.
func (m Measurement) between() []Part {
	var parts []Part
	for part := range m.Costs {
		if part != PartFunction {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return parts
}

// switches are the context switches of a call, the function's among them.
func (m Measurement) switches() float64 {
	var sum int64
	for _, cost := range m.Costs {
		sum += cost.Switches
	}
	return m.perCall(float64(sum))
}

// memory is what a call allocates in the programs that export metrics.
func (m Measurement) memory() (mallocs, bytes float64, known bool) {
	for _, cost := range m.Costs {
		if cost.Exports {
			mallocs += float64(cost.Mallocs)
			bytes += float64(cost.Bytes)
			known = true
		}
	}
	return m.perCall(mallocs), m.perCall(bytes), known
}

// rate is the calls that were answered in a second.
func (m Measurement) rate() float64 { return float64(m.Calls) / m.Took.Seconds() }

// Spread is some rounds of one figure.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// String is the spread as median (minimum to maximum).
func (s Spread) String() string {
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Min), number(s.Max))
}

// spreadOf is that of at least one value.
func spreadOf(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}
