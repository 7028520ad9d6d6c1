package provisioner

import "time"

// Counts are a function's instances by state.
type Counts struct {
	Creating, Created, Leaving int
	// Awaited are the Creating ones that ran when they were adopted, and whose agents have not
	// connected since.
	Awaited int
	// Disconnected are instances, creating or created, whose agent has connected before and
	// has no stream now. The created ones are among Leaving. GivenUp are those of them that were
	// stopped and have not ended.
	Disconnected, GivenUp int
}

// countsFor is what one instance adds to its function's counts. A created instance without a
// stream counts as leaving, because it can take no work.
func countsFor(in *Instance) (c Counts) {
	if in.disconnected() {
		c.Disconnected = 1
		if in.Stopping() {
			c.GivenUp = 1
		}
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
	return Counts{
		c.Creating + d.Creating, c.Created + d.Created, c.Leaving + d.Leaving, c.Awaited + d.Awaited,
		c.Disconnected + d.Disconnected, c.GivenUp + d.GivenUp,
	}
}

func (c Counts) minus(d Counts) Counts {
	return Counts{
		c.Creating - d.Creating, c.Created - d.Created, c.Leaving - d.Leaving, c.Awaited - d.Awaited,
		c.Disconnected - d.Disconnected, c.GivenUp - d.GivenUp,
	}
}

// Observation is the state of one function in the inventory at one time.
type Observation struct {
	Counts
	// Failing says that its last instances did not start. Then Why is the reason.
	Failing bool
	Why     StartFailure
	// RetryAfter is the time until the next instance may be launched.
	RetryAfter time.Duration
	// Unavailable is why the cluster keeps its instances from being launched now; zero if it does
	// not. It does not count as Failing.
	Unavailable StartFailure
}

// Observe reads one function. It is on the path of calls, so it neither allocates nor waits
// for work on other functions.
func (i *Inventory) Observe(uid string) (o Observation) {
	e := i.find(uid)
	if e == nil {
		return o
	}
	defer e.mu.Unlock()
	o.Counts = e.counts
	if e.backoff.unused() {
		return o
	}
	now := i.now()
	o.Why, o.Failing = e.backoff.Failing()
	o.RetryAfter, o.Unavailable = e.backoff.RetryAfter(now), e.backoff.Unavailable(now)
	return o
}
