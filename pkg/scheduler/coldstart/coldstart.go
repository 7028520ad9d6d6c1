package coldstart

import "time"

// Phase is a part of a start.
type Phase int

// The phases in order.
const (
	// Decide is from when an instance was wanted until its launch.
	Decide Phase = iota
	// Create is until the runtime had made it: the API server answered, or the
	// processes were started.
	Create
	// Sandbox is until its pod had its network, in clusters.
	Sandbox
	// Containers is until its agent began.
	Containers
	// Ready is until the function could be called.
	Ready
	// Hello is until the scheduler knew the agent, if that came later.
	Hello
	// Claim is until the instance asked for its first call, and got it if one waited.
	Claim

	// NumPhases is their number.
	NumPhases
)

var names = [NumPhases]string{"decide", "create", "sandbox", "containers", "ready", "hello", "claim"}

// String is the phase's name.
func (s Phase) String() string { return names[s] }

// Moments are when a start came to each point, all on one clock; zero if that is not
// known, or did not happen.
type Moments struct {
	// Wanted is when the oldest call had come that waited at the launch, or when the launch
	// was decided if no call waited. Launched, the time of the launch, must be known.
	Wanted, Launched time.Time
	// Created, Sandboxed, Began, Ready and Hello are the ends of the phases Create
	// to Hello.
	Created, Sandboxed, Began, Ready, Hello time.Time
	// Served is when the instance had asked for its first call. It must be known.
	Served time.Time
}

// Bounds are the beginning of the first phase and the ends of all, in ascending order. The
// first is Wanted, or the launch if that is earlier, and the last is Served.
func (m Moments) Bounds() [NumPhases + 1]time.Time {
	first := m.Wanted
	if first.IsZero() || first.After(m.Launched) {
		first = m.Launched
	}
	last := m.Served
	if last.Before(first) {
		last = first
	}
	bounds := [NumPhases + 1]time.Time{first, m.Launched, m.Created, m.Sandboxed, m.Began, m.Ready, m.Hello, last}
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

// Durations are how long each phase took.
type Durations [NumPhases]time.Duration

// Phases are how long the start spent with each phase.
func (m Moments) Phases() Durations {
	bounds := m.Bounds()
	var d Durations
	for phase := range d {
		d[phase] = bounds[phase+1].Sub(bounds[phase])
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
	for phase := range d {
		d[phase] += other[phase]
	}
	return d
}
