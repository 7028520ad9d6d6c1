package core

import "time"

// reportEvery is how often a busy instance pings, so that its report arrives.
const reportEvery = 5 * time.Second

// Report has the counters of an instance since it began or was assigned.
type Report struct {
	// Calls were run, Broken of them did not end as they should.
	Calls, Broken uint64
	// ClaimsRefused is how many claims were refused.
	ClaimsRefused uint64
	// CoreAsks is how many calls asked their node agent for a core, and CoreTimeouts how many
	// of them began without one.
	CoreAsks, CoreTimeouts uint64
	// Reconnects is how many streams were opened after the first.
	Reconnects uint64
	// BackedOff says that the instance got no call for BackoffAfter and pings less often.
	BackedOff bool
}

// ran counts a call, unless the function saw nothing of it.
func (r *Report) ran(o Outcome) {
	switch o {
	case NotStarted, Untouched:
		return
	case Broken:
		r.Broken++
	}
	r.Calls++
}

// startup has the times of the instance's start. Hellos carry them until a scheduler has
// accepted one.
type startup struct {
	began, ready time.Time
	// accepted says that a scheduler has accepted a hello, opened that a stream was open.
	accepted, opened bool
}

func (s startup) hello(now time.Time, spare bool) Hello {
	h := Hello{Spare: spare}
	if !s.accepted {
		h.Age = now.Sub(s.began)
		if !s.ready.IsZero() {
			h.ReadyAfter = s.ready.Sub(s.began)
		}
	}
	return h
}

func (c *Core) report() Report {
	r := c.counts
	r.BackedOff = c.idle.quiet
	return r
}
