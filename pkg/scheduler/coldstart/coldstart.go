package coldstart

import "time"

// Stage is a part of a start.
type Stage int

// The stages, in their order.
const (
	// Decide is from when an instance was wanted until it was ordered.
	Decide Stage = iota
	// Create is until the runtime had made it: the API server answered, or the
	// processes were started.
	Create
	// Sandbox is until its pod had a network, where there are pods.
	Sandbox
	// Containers is until its agent began.
	Containers
	// Ready is until the function could be called.
	Ready
	// Hello is until the scheduler knew the agent, if that came later.
	Hello
	// Claim is until the instance asked for its first call, and got it if one waited.
	Claim

	// NumStages is how many there are.
	NumStages
)

var names = [NumStages]string{"decide", "create", "sandbox", "containers", "ready", "hello", "claim"}

// String is the stage's name.
func (s Stage) String() string { return names[s] }

// Moments are when a start came to each point, all on one clock; zero if that is not
// known, or did not happen.
type Moments struct {
	// Wanted is when the oldest call had come that waited when the instance was
	// ordered, or when that was decided if none did. Ordered must be known.
	Wanted, Ordered time.Time
	// Created, Sandboxed, Began, Ready and Hello are the ends of the stages Create
	// to Hello.
	Created, Sandboxed, Began, Ready, Hello time.Time
	// Served is when the instance had asked for its first call. It must be known.
	Served time.Time
}

// Bounds are the beginning of the first stage and the ends of all: they never fall.
// The first is Wanted, or Ordered if that is earlier, and the last is Served.
func (m Moments) Bounds() [NumStages + 1]time.Time {
	first := m.Wanted
	if first.IsZero() || first.After(m.Ordered) {
		first = m.Ordered
	}
	last := m.Served
	if last.Before(first) {
		last = first
	}
	bounds := [NumStages + 1]time.Time{first, m.Ordered, m.Created, m.Sandboxed, m.Began, m.Ready, m.Hello, last}
	for i := 1; i < len(bounds); i++ {
		switch at := bounds[i]; {
		case at.Before(bounds[i-1]): // as zero is
			bounds[i] = bounds[i-1]
		case at.After(last):
			bounds[i] = last
		}
	}
	return bounds
}

// Durations are how long each stage took.
type Durations [NumStages]time.Duration

// Stages are how long the start spent with each stage.
func (m Moments) Stages() Durations {
	bounds := m.Bounds()
	var d Durations
	for stage := range d {
		d[stage] = bounds[stage+1].Sub(bounds[stage])
	}
	return d
}

// Total is how long all of them took.
func (d Durations) Total() time.Duration {
	total := time.Duration(0)
	for _, took := range d {
		total += took
	}
	return total
}

// Plus adds up.
func (d Durations) Plus(other Durations) Durations {
	for stage := range d {
		d[stage] += other[stage]
	}
	return d
}
