package callorder

import (
	"cmp"
	"slices"
	"time"
)

// dispatch gives tickets to calls and bands to instances:
//
//  1. A calm node lets every call begin.
//  2. While a ticket is free, the first of the line gets it.
//  3. The first of the line takes the ticket of a call that has much more left.
//  4. Calls on idle cores go back to the low band where tickets need the cores.
//  5. Cores that nobody waits for lift calls out of the low band.
func (c *Core) dispatch(now time.Duration) {
	for c.ticketFree() {
		i := c.namespaces.first(now)
		if i == nil {
			break
		}
		c.give(now, i)
	}
	if !c.busy {
		return
	}
	if c.params.preempts() {
		c.preempt(now)
	}
	for len(c.lifted) > 0 && len(c.holding)+len(c.lifted) > c.params.Cores {
		i := slices.MaxFunc(c.lifted, byAge)
		c.enter(i, demoted)
		c.setBand(i, true, WhySlice)
	}
	for len(c.demoted) > 0 && len(c.holding)+len(c.lifted) < c.params.Cores {
		i := slices.MinFunc(c.demoted, byAge)
		c.enter(i, lifted)
		c.setBand(i, false, WhyIdleCore)
	}
}

// ticketFree says whether a call may have a ticket now.
func (c *Core) ticketFree() bool {
	return !c.busy || c.params.Order == None || len(c.holding) < c.params.Cores
}

// give gives a ticket to a call that waits for one.
func (c *Core) give(now time.Duration, i *instance) {
	begins := i.phase == waiting
	if begins && c.overloaded(now, i) {
		// It goes on like a call that outlived its slice, and takes no ticket.
		c.enter(i, demoted)
		c.setBand(i, true, WhyOverload)
	} else {
		c.enter(i, holding)
		c.setBand(i, false, WhyTicket)
	}
	if begins {
		i.began, i.stalled = i.usage, 0
		c.out = append(c.out, Grant{Instance: i.id, Ask: i.ask, Waited: now - i.asked})
	}
}

// overloaded says whether the call has waited too many slices.
func (c *Core) overloaded(now time.Duration, i *instance) bool {
	return c.busy && c.params.Bypass > 0 &&
		float64(now-i.received) >= c.params.Bypass*float64(c.slice(i))
}

// preempt passes on one ticket, if the first of the line needs it for a much shorter time. A
// call that has aged to the front keeps its ticket.
func (c *Core) preempt(now time.Duration) {
	x := c.namespaces.first(now)
	if x == nil || len(c.holding) == 0 || c.overloaded(now, x) {
		return
	}
	holder := slices.MaxFunc(c.holding, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(a.left(), b.left()), cmp.Compare(a.id, b.id))
	})
	left := holder.left()
	if left <= c.params.PreemptLeast || float64(x.left())*c.params.PreemptGain >= float64(left) || c.key(holder) <= x.key {
		return
	}
	c.setBand(holder, true, WhyPreempted)
	c.wait(holder, preempted)
	c.give(now, x)
}

// left is what a call is expected to need yet: the rest of its function's mean, or, once it
// has outlived the mean, as much as it has used.
func (i *instance) left() time.Duration {
	used := time.Duration(0)
	if i.phase != waiting {
		used = i.used()
	}
	if mean := i.function.mean(); used < mean {
		return mean - used
	}
	return used
}

// byAge compares calls by when the node received them. Idle cores go to the oldest call that has
// outlived its slice: calls beyond it are mostly alike, and the order by what they have used would
// end all of them late.
func byAge(a, b *instance) int {
	return cmp.Or(cmp.Compare(a.received, b.received), cmp.Compare(a.id, b.id))
}

// wait puts the call of an instance into the line, waiting or preempted.
func (c *Core) wait(i *instance, as phase) {
	c.leaveLists(i)
	i.phase = as
	i.key = c.key(i)
	i.namespace.add(i)
}

// enter moves the call of an instance to a phase in which it has begun.
func (c *Core) enter(i *instance, to phase) {
	c.leaveLists(i)
	i.phase = to
	list := c.those(to)
	*list = append(*list, i)
}

// leave ends the call of an instance.
func (c *Core) leave(i *instance) {
	c.leaveLists(i)
	i.phase = idle
	c.setBand(i, false, WhyEnded)
}

// leaveLists takes the call of an instance out of the line or the list that it is in.
func (c *Core) leaveLists(i *instance) {
	switch i.phase {
	case idle:
	case waiting, preempted:
		i.namespace.cancel(i)
	default:
		list := c.those(i.phase)
		at := slices.Index(*list, i)
		*list = slices.Delete(*list, at, at+1)
	}
}

func (c *Core) those(p phase) *[]*instance {
	switch p {
	case holding:
		return &c.holding
	case blocked:
		return &c.blocked
	case demoted:
		return &c.demoted
	default:
		return &c.lifted
	}
}

// setBand moves an instance to a band, if it is not there.
func (c *Core) setBand(i *instance, low bool, why Why) {
	if i.low == low {
		return
	}
	i.low = low
	c.out = append(c.out, SetBand{Instance: i.id, Low: low, Why: why})
}
