package callorder

import (
	"fmt"
	"slices"
	"time"
)

// UnaskedParams bound what instances compute that must ask (Joined.MustAsk) while they run no call
// that has begun with a ticket: because their agents do not ask, or because functions compute
// between calls. An instance that has used up its allowance is low until it has regained it or
// its next call gets a ticket. Above bounds all that take tickets, whether they must ask or not.
type UnaskedParams struct {
	// Start is the allowance of an instance until its first call gets a ticket: a cold start
	// computes before that, and must not be slowed down.
	Start time.Duration
	// Burst is the allowance between calls, and Share the part of a core, in [0, 1], at which it is
	// regained.
	Burst time.Duration
	Share float64
	// Exempt is the allowance of an instance that need not ask, before it has to ask again. Renews says
	// that each exemption begins with all of it, whatever the instance has left.
	Exempt time.Duration
	Renews bool
	// Above is the allowance in the place of all others while the namespace of the instance has had more
	// than its share and others want cores, regained at Share, too. It holds for starts, exemptions, and
	// functions of higher concurrency: one call with a ticket would have as little beside many instances
	// without one as any of them, and the calls that wait for its ticket nothing at all.
	Above time.Duration
}

// UnaskedOfPods is what pods may compute without a ticket: more than a process, because a pod has the
// agent in it, and whatever else the cluster puts there. A pod that is low is also slow to ask for its
// next call. So only those are low that go on computing, and no start is: long ones take tens of
// seconds of processor time. Exemptions do not renew what pods may compute, which are of many people: an
// agent that says at once that its call is over seems to have short ones.
func UnaskedOfPods() UnaskedParams {
	return UnaskedParams{
		Start: time.Minute, Burst: 200 * time.Millisecond, Share: 0.05, Exempt: 200 * time.Millisecond, Above: 20 * time.Millisecond,
	}
}

func (p UnaskedParams) validate() error {
	if p.Start < p.Burst || p.Exempt < p.Burst || p.Burst < p.Above || p.Above <= 0 || !(p.Share > 0 && p.Share <= 1) {
		return fmt.Errorf("unasked is %+v: Above must be positive, Burst at least Above, Start and Exempt at least Burst, and Share above 0 and at most 1", p)
	}
	return nil
}

// allowance is what an instance may compute without a ticket.
type allowance struct {
	left time.Duration
	// emptied says that it had nothing left, and has not regained all of it since.
	emptied bool
	above   time.Duration // what is left of UnaskedParams.Above
	at      time.Duration // when it was looked at last
	// unknown says that the processor time of the time before has to be found out first: on a calm
	// node nobody looks.
	unknown bool
	exempt  bool
}

// unasked reports whether the instance runs no call that has begun.
func (i *instance) unasked() bool { return i.phase == idle || i.phase == waiting }

// spend takes what an instance has used from its allowance, and gives it what it has regained. It reports
// whether it knew when that was used.
func (a *allowance) spend(now, grew time.Duration, p UnaskedParams) (known bool) {
	since := now - a.at
	a.at = now
	if a.unknown {
		a.unknown = false
		return false
	}
	if a.left < p.Burst {
		a.left = min(p.Burst, a.left+time.Duration(p.Share*float64(since)))
	}
	a.above = min(p.Above, a.above+time.Duration(p.Share*float64(since)))
	// Debts are bounded, so that they are forgotten in some seconds.
	a.left, a.above = max(-p.Burst, a.left-grew), max(-p.Above, a.above-grew)
	a.emptied = a.left <= 0 || a.emptied && a.left < p.Burst
	return true
}

// spentAll says whether an instance has used up what it may compute now without a ticket, and rested whether
// it has regained that.
func (c *Core) spentAll(now time.Duration, i *instance) (spent, rested bool) {
	a := i.allowance
	spent, rested = i.mustAsk && a.left <= 0, !i.mustAsk || !a.emptied
	if c.namespaces.above(now, i.namespace) {
		spent, rested = spent || a.above <= 0, rested && a.above >= c.params.Unasked.Above
	}
	return spent, rested
}

// ration gives an instance that runs no call the band that its allowance allows.
func (c *Core) ration(now time.Duration, i *instance) {
	if !c.busy || !i.class.takesTickets() {
		return
	}
	a, p := &i.allowance, c.params.Unasked
	if a.above <= 0 {
		i.namespace.wanted = now
	}
	switch spent, rested := c.spentAll(now, i); {
	case i.low && rested:
		c.setBand(i, false, WhyRested)
	case i.low || !spent:
	case a.exempt:
		a.exempt, a.left, a.above = false, max(a.left, p.afterExemption()), p.Above/2
		a.emptied = a.left < p.Burst
		i.told = now
		c.out = append(c.out, AskAgain{Instance: i.id})
	default:
		c.setBand(i, true, WhyUnasked)
	}
}

// afterExemption is the allowance of an instance that has to ask again, which it does not know yet.
func (p UnaskedParams) afterExemption() time.Duration {
	if p.Renews {
		return p.Burst
	}
	return p.Burst / 2
}

// MayBeExempt says whether an instance may stop asking: its allowance is renewed, or it has regained it, and
// its namespace has had no more than its share.
func (c *Core) MayBeExempt(now time.Duration, id InstanceID) bool {
	i := c.instances[id]
	return i != nil && (c.params.Unasked.Renews || i.allowance.left >= c.params.Unasked.Burst) && !c.namespaces.above(now, i.namespace)
}

// exempted lets an instance compute without asking for a while.
func (a *allowance) exempted(p UnaskedParams) { a.exempt, a.emptied, a.left = true, false, p.Exempt }

// AppendUnasked appends the next instances, at most n, that take tickets, run no call that has begun, and are not low: AppendLow has those.
// Who computes there is found in as many turns as it takes to go around.
func (c *Core) AppendUnasked(to []InstanceID, n int) []InstanceID {
	if !c.busy {
		return to
	}
	for range len(c.members) {
		c.turn = (c.turn + 1) % len(c.members)
		if i := c.members[c.turn]; i.class.takesTickets() && i.unasked() && !i.low {
			to = append(to, i.id)
			n--
		}
		if n <= 0 {
			break
		}
	}
	return to
}

// mustRest says whether an instance that runs no call has to be low.
func (c *Core) mustRest(now time.Duration, i *instance) bool {
	if !c.busy || !i.class.takesTickets() || !i.unasked() || i.allowance.exempt {
		return false
	}
	spent, _ := c.spentAll(now, i)
	return spent
}

// gone remembers the allowances of instances that have left: one that comes again has what it had.
type gone struct {
	of    map[string]goneInstance
	order []string // their names; the one that left first is the first
}

type goneInstance struct {
	allowance allowance
	usage     time.Duration
}

// mostGone bounds how many are remembered.
const mostGone = 4096

// keep remembers an instance that leaves, of whatever class: it may come again with another one.
func (g *gone) keep(i *instance) {
	if i.name == "" {
		return
	}
	if g.of == nil {
		g.of = map[string]goneInstance{}
	}
	if len(g.order) == mostGone {
		delete(g.of, g.order[0])
		g.order = g.order[1:]
	}
	g.order = append(g.order, i.name)
	g.of[i.name] = goneInstance{i.allowance, i.usage}
}

// allowance is that of an instance that joins. What it has used in its life counts as its start.
// On a calm node nobody is charged.
func (g *gone) allowance(now time.Duration, e Joined, busy bool, p UnaskedParams) allowance {
	before, known := g.of[e.Name]
	if !known {
		return allowance{left: max(p.Burst, p.Start-e.Usage), above: p.Above, at: now}
	}
	delete(g.of, e.Name)
	g.order = slices.DeleteFunc(g.order, func(name string) bool { return name == e.Name })
	a := before.allowance
	a.exempt, a.unknown = false, !busy
	a.spend(now, max(0, e.Usage-before.usage), p)
	return a
}
