package callorder

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// dispatch gives tickets to calls and bands to instances:
//
//  1. A calm node lets every call begin.
//  2. While a ticket is free, the first of the line gets it; with SERPT the shortest call, if
//     enough tickets have gone by age.
//  3. The shortest that waits takes the ticket of a call that has much more left.
//  4. Calls that outlived their slice go back to the low band where tickets need their cores, but
//     for Params.Outlived cores.
//  5. Cores that nobody waits for, and those, lift calls out of the low band, and so does great age.
func (c *Core) dispatch(now time.Duration) {
	for c.ticketFree() {
		i, aged := c.nextInLine(now)
		if i == nil {
			break
		}
		c.give(now, i)
		i.aged = aged
	}
	if !c.busy {
		return
	}
	if c.params.preempts() {
		c.preempt(now)
	}
	entitled := max(c.outlivedCores(), c.tooOld(now))
	for len(c.lifted) > entitled && len(c.holding)+len(c.lifted) > c.tickets() {
		i := slices.MaxFunc(c.lifted, byAge)
		c.enter(now, i, demoted)
		c.setBand(i, true, WhySlice)
	}
	for len(c.demoted) > 0 && (len(c.holding)+len(c.lifted) < c.tickets() || len(c.lifted) < entitled) {
		i := slices.MinFunc(c.demoted, byAge)
		c.enter(now, i, lifted)
		c.setBand(i, false, WhyIdleCore)
	}
}

// ticketFree says whether a call may have a ticket now.
func (c *Core) ticketFree() bool {
	return !c.busy || c.params.Order == None || len(c.holding) < c.handedOut()
}

// outlivedCores is how many cores calls that have outlived their slice have now, whatever waits. Those that
// sleep need none.
func (c *Core) outlivedCores() int {
	return min(c.params.Outlived, len(c.demoted)+len(c.lifted), c.tickets()-1)
}

// tooOld is 1 if a call that has outlived its slice must compute for its age, and 0 otherwise. It does beside the tickets,
// so that one core is enough.
func (c *Core) tooOld(now time.Duration) int {
	if c.params.OutlivedAge == 0 {
		return 0
	}
	due := func(i *instance) bool { return now-i.asked >= c.params.OutlivedAge }
	if slices.ContainsFunc(c.demoted, due) || slices.ContainsFunc(c.lifted, due) {
		return 1
	}
	return 0
}

// tickets is how many calls may have one on a busy node.
func (c *Core) tickets() int { return max(1, c.params.Cores-c.occupied) }

// handedOut is how many tickets a busy node hands out now: the cores of calls beyond their slice have none.
func (c *Core) handedOut() int { return c.tickets() - c.outlivedCores() }

// give gives a ticket to a call that waits for one.
func (c *Core) give(now time.Duration, i *instance) {
	begins := i.phase == waiting
	if begins && c.overloaded(now, i) {
		// It goes on like a call that outlived its slice, and takes no ticket.
		c.enter(now, i, demoted)
		c.setBand(i, true, WhyOverload)
	} else {
		c.enter(now, i, holding)
		c.setBand(i, false, WhyTicket)
	}
	if begins {
		i.allowance.left = min(i.allowance.left, c.params.Unasked.Burst)
		i.beginCall()
		c.out = append(c.out, Grant{Instance: i.id, Ask: i.ask, Waited: now - i.asked})
	}
}

// beginCall notes what the instance has used before its call.
func (i *instance) beginCall() { i.began, i.wasted = i.usage, 0 }

// overloaded says whether the call has waited too many slices.
func (c *Core) overloaded(now time.Duration, i *instance) bool {
	return c.busy && c.params.Bypass > 0 &&
		float64(now-i.received) >= c.params.Bypass*float64(c.slice(i))
}

// preempt passes on one ticket, if the shortest that waits needs it for a much shorter time. A
// call that has its ticket by age keeps it.
func (c *Core) preempt(now time.Duration) {
	x := c.first(now, bySize)
	if x == nil || c.overloaded(now, x) {
		return
	}
	holder := c.mostLeft(now, x)
	if holder == nil || x.namespace.usesMuchMore(now, holder.namespace) ||
		!c.params.muchShorter(c.params.doubted(now, x, holder), c.params.doubted(now, holder, x)) {
		return
	}
	c.setBand(holder, true, WhyPreempted)
	c.wait(holder, preempted)
	c.give(now, x)
}

// muchShorter says whether a call needs so much less than another one that it may take its ticket.
func (p Params) muchShorter(x, than time.Duration) bool {
	return than > p.PreemptLeast && float64(x)*p.PreemptGain < float64(than)
}

// endless is what a call has left that hardly uses its ticket.
const endless = time.Duration(math.MaxInt64)

// doubted is what a call is expected to need yet, as it counts between it and a call of another namespace
// that has computed less. Two things keep a ticket from that longer than they seem to: calls that hardly
// use theirs, which have no end, and functions that nobody knows, which are as long as the namespace's others
// were.
func (p Params) doubted(now time.Duration, i, by *instance) time.Duration {
	left, n := i.left(), i.namespace
	switch {
	case by == nil || n == by.namespace || n.spentBy(now) <= by.namespace.spentBy(now):
		return left
	case p.BlockedAfter > 0 && i.slow >= p.BlockedAfter:
		return endless
	case i.function.known():
		return left
	}
	return max(left, n.newcomers.mean())
}

// nextInLine is the call that gets the next ticket, and whether it does by its age: one waits that
// could take the ticket away again. Only a part of the tickets goes by age. Calls that are about as
// long take turns by their key, which is no reason to keep the ticket from much shorter ones that
// come later.
func (c *Core) nextInLine(now time.Duration) (i *instance, aged bool) {
	i = c.first(now, byKey)
	if i == nil || !c.params.preempts() {
		return i, false
	}
	shortest := c.first(now, bySize)
	if !c.params.muchShorter(shortest.left(), i.left()) {
		return i, false
	}
	held := 0
	for _, holder := range c.holding {
		if holder.aged {
			held++
		}
	}
	if held < c.params.byAge(c.handedOut()) {
		return i, true
	}
	return shortest, false
}

// mostLeft is the call that has the most left of those that have a ticket, and not by their age: before a
// call of another namespace, the age that the node has seen, and of calls that use their tickets.
func (c *Core) mostLeft(now time.Duration, before *instance) *instance {
	var most *instance
	var left time.Duration
	for _, i := range c.holding {
		its := c.params.doubted(now, i, before)
		keeps := i.aged && its < endless && (before == nil || i.namespace == before.namespace || i.proven < before.proven)
		if !keeps && (most == nil || cmp.Or(cmp.Compare(its, left), cmp.Compare(i.id, most.id)) > 0) {
			most, left = i, its
		}
	}
	return most
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

// byAge compares calls by when the node heard of them: what agents say of the time before would bring their
// calls before those of others. Idle cores go to the oldest call that has
// outlived its slice: calls beyond it are mostly alike, and the order by what they have used would
// end all of them late.
func byAge(a, b *instance) int {
	return cmp.Or(cmp.Compare(a.asked, b.asked), cmp.Compare(a.id, b.id))
}

// wait puts the call of an instance into the line, waiting or preempted.
func (c *Core) wait(i *instance, as phase) {
	c.leaveLists(i)
	i.phase, i.aged = as, false
	i.key, i.proven, i.size = c.params.key(i, i.received), c.params.key(i, i.asked), float64(i.left())
	i.namespace.add(i)
}

// resize puts the calls that wait to their new places once something is known of the function of an
// instance. Later changes of its mean are small, and count for calls that come then.
func (c *Core) resize(of *instance) {
	if c.params.Order != SERPT && c.params.Order != SEPT {
		return
	}
	for _, i := range slices.Clone(of.namespace.waiting()) {
		if i.function == of.function && i.phase == waiting {
			c.wait(i, waiting)
		}
	}
}

// enter moves the call of an instance to a phase in which it has begun.
func (c *Core) enter(now time.Duration, i *instance, to phase) {
	c.leaveLists(i)
	i.phase, i.aged = to, false
	i.samples = samples{sampled: now}
	i.outlived = to == demoted || to == lifted || i.outlived && to == blocked
	list := c.those(to)
	*list = append(*list, i)
}

// leave ends the call of an instance.
func (c *Core) leave(now time.Duration, i *instance) {
	c.leaveLists(i)
	i.phase, i.aged = idle, false
	i.allowance.at = now
	if c.mustRest(now, i) {
		c.setBand(i, true, WhyUnasked)
		return
	}
	c.setBand(i, false, WhyEnded)
}

// begun are the instances whose calls have begun, by what they have of the cores.
type begun struct{ holding, lifted, blocked, demoted []*instance }

// leaveLists takes the call of an instance out of the line or the list that it is in.
func (b *begun) leaveLists(i *instance) {
	switch i.phase {
	case idle:
	case waiting, preempted:
		i.namespace.cancel(i)
	default:
		list := b.those(i.phase)
		at := slices.Index(*list, i)
		*list = slices.Delete(*list, at, at+1)
	}
}

func (b *begun) those(p phase) *[]*instance {
	switch p {
	case holding:
		return &b.holding
	case blocked:
		return &b.blocked
	case demoted:
		return &b.demoted
	default:
		return &b.lifted
	}
}

// setBand moves an instance to a band, if it is not there. Batch instances stay in the low one.
func (c *Core) setBand(i *instance, low bool, why Why) {
	if i.low == low || i.class == Batch && !low {
		return
	}
	i.low = low
	c.out = append(c.out, SetBand{Instance: i.id, Low: low, Why: why})
}
