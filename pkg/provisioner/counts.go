package provisioner

import "time"

// Counts are a function's instances by state.
type Counts struct {
	Creating, Created, Leaving int
	// Awaited are those of Creating that ran when they were adopted, and whose
	// agent has not been heard of since.
	Awaited int
	// Disconnected are those, creating or created, whose agent was heard of and has no
	// stream now. Those that were created are among Leaving.
	Disconnected int
}

// countsFor is what one instance adds to its function's. A created instance without a
// stream counts as leaving: it can take no work.
func countsFor(in *Instance) (c Counts) {
	if in.disconnected() {
		c.Disconnected = 1
	}
	switch {
	case in.State == Creating:
		c.Creating = 1
		if in.Ran && !in.Connected {
			c.Awaited = 1
		}
	case in.State == Created && in.Connected:
		c.Created = 1
	default:
		c.Leaving = 1
	}
	return c
}

func (c Counts) plus(d Counts) Counts {
	return Counts{c.Creating + d.Creating, c.Created + d.Created, c.Leaving + d.Leaving, c.Awaited + d.Awaited, c.Disconnected + d.Disconnected}
}

func (c Counts) minus(d Counts) Counts {
	return Counts{c.Creating - d.Creating, c.Created - d.Created, c.Leaving - d.Leaving, c.Awaited - d.Awaited, c.Disconnected - d.Disconnected}
}

// Observation is what the inventory says of one function at one time.
type Observation struct {
	Counts
	// Failing says that its last instances did not start. Why is valid then, and
	// RetryAfter is how long until the next one is tried.
	Failing    bool
	Why        StartFailure
	RetryAfter time.Duration
}

// Observe looks at one function. Calls do, so it neither allocates nor waits for what is
// done for other functions.
func (v *Inventory) Observe(uid string) (o Observation) {
	a := v.find(uid)
	if a == nil {
		return o
	}
	defer a.mu.Unlock()
	var retryAt time.Time
	o.Counts = a.counts
	if o.Why, retryAt, o.Failing = a.backoff.Failing(); !retryAt.IsZero() {
		o.RetryAfter = max(0, retryAt.Sub(v.now()))
	}
	return o
}
