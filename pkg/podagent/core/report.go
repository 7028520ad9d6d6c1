package core

import "time"

// reportEvery is how often a scheduler hears of an instance that is too busy to ping.
const reportEvery = 5 * time.Second

// Report is what is counted of an instance, since it began or was assigned.
type Report struct {
	// Calls were run, Broken of them did not end as they should.
	Calls, Broken uint64
	// ClaimsRefused is how many claims were refused.
	ClaimsRefused uint64
	// Reconnects is how many streams were opened after the first.
	Reconnects uint64
	// BackedOff says that the instance has waited in vain and asks less often.
	BackedOff bool
}

// ran counts a call, unless the function saw nothing of it.
func (r *Report) ran(o Outcome) {
	switch o {
	case NotStarted:
		return
	case Broken:
		r.Broken++
	}
	r.Calls++
}

// origin is how an instance came into being, which hellos say until a scheduler has
// accepted its hello.
type origin struct {
	began, ready time.Time
	known        bool
	// opened says that there was a stream.
	opened bool
}

// hello introduces the instance.
func (o origin) hello(now time.Time, spare bool) Hello {
	h := Hello{Spare: spare}
	if !o.known {
		h.Age = now.Sub(o.began)
		if !o.ready.IsZero() {
			h.ReadyAfter = o.ready.Sub(o.began)
		}
	}
	return h
}

func (c *Core) report() Report {
	r := c.counts
	r.BackedOff = c.idle.quiet
	return r
}
