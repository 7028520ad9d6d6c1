package provisioner

import "sync"

// Counts are a function's instances by state.
type Counts struct {
	Creating, Created, Leaving int
	// Awaited are those of Creating that ran when they were adopted, and whose
	// agent has not been heard of since.
	Awaited int
	// Silent are those, creating or created, whose agent was heard of and has no
	// stream now. Those that were created are among Leaving.
	Silent int
}

// countsFor is what one instance adds to its function's. A created instance without a
// stream counts as leaving: it can take no work.
func countsFor(in *Instance) (c Counts) {
	if in.silent() {
		c.Silent = 1
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
	return Counts{c.Creating + d.Creating, c.Created + d.Created, c.Leaving + d.Leaving, c.Awaited + d.Awaited, c.Silent + d.Silent}
}

func (c Counts) minus(d Counts) Counts {
	return Counts{c.Creating - d.Creating, c.Created - d.Created, c.Leaving - d.Leaving, c.Awaited - d.Awaited, c.Silent - d.Silent}
}

// countsOf are the counts of all functions that have instances. Calls read them,
// which must not wait for what is done for other functions.
type countsOf struct{ byUID sync.Map }

func (c *countsOf) of(uid string) Counts {
	counts, _ := c.byUID.Load(uid)
	n, _ := counts.(Counts)
	return n
}

func (c *countsOf) publish(uid string, n Counts) {
	if n == (Counts{}) {
		c.byUID.Delete(uid)
	} else {
		c.byUID.Store(uid, n)
	}
}
