package callorder

import (
	"fmt"
	"slices"
	"time"
)

// UnaskedParams bound what instances compute that must ask (Joined.MustAsk) while they run no call
// that has begun with a ticket: because their agents do not ask, or because functions compute
// between calls. An instance that has used up its allowance is low until it has regained it or
// its next call gets a ticket.
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
}

// UnaskedOfPods is what pods may compute without a ticket: more than a process, because a pod has the
// agent in it, and whatever else the cluster puts there. A pod that is low is also slow to ask for its
// next call. So only those are low that go on computing, and no start is: long ones take tens of
// seconds of processor time. Exemptions do not renew what pods may compute, which are of many people: an
// agent that says at once that its call is over seems to have short ones.
func UnaskedOfPods() UnaskedParams {
	return UnaskedParams{Start: time.Minute, Burst: 200 * time.Millisecond, Share: 0.05, Exempt: 200 * time.Millisecond}
}

func (p UnaskedParams) validate() error {
	if p.Start < p.Burst || p.Exempt < p.Burst || p.Burst <= 0 || !(p.Share > 0 && p.Share <= 1) {
		return fmt.Errorf("unasked is %+v: Burst must be positive, Start and Exempt at least Burst, and Share above 0 and at most 1", p)
	}
	return nil
}

// allowance is what an instance may compute without a ticket.
type allowance struct {
	left time.Duration
	at   time.Duration // when it was looked at last
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
	// A debt is bounded, so that it is forgotten in some seconds.
	a.left = max(-p.Burst, a.left-grew)
	return true
}

// ration gives an instance that runs no call the band that its allowance allows.
func ration(c *Core, i *instance) {
	switch a := &i.allowance; {
	case !c.busy || !i.mustAsk:
	case i.low && a.left >= c.params.Unasked.Burst:
		c.setBand(i, false, WhyRested)
	case i.low || a.left > 0:
	case a.exempt:
		a.exempt, a.left = false, c.params.Unasked.afterExemption()
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

// MayBeExempt says whether an instance may stop asking: its allowance is renewed, or it has regained it.
func (c *Core) MayBeExempt(id InstanceID) bool {
	i := c.instances[id]
	return i != nil && (c.params.Unasked.Renews || i.allowance.left >= c.params.Unasked.Burst)
}

// exempted lets an instance compute without asking for a while.
func (a *allowance) exempted(p UnaskedParams) { a.exempt, a.left = true, p.Exempt }

// AppendUnasked appends the next instances, at most n, that must ask and run no call that has begun.
// Who computes there is found in as many turns as it takes to go around.
func (c *Core) AppendUnasked(to []InstanceID, n int) []InstanceID {
	if !c.busy {
		return to
	}
	for range len(c.members) {
		c.turn = (c.turn + 1) % len(c.members)
		if i := c.members[c.turn]; i.mustAsk && i.unasked() {
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
func mustRest(c *Core, i *instance) bool {
	return c.busy && i.mustAsk && i.unasked() && !i.allowance.exempt && i.allowance.left <= 0
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

// keep remembers an instance that leaves.
func (g *gone) keep(i *instance) {
	if i.name == "" || !i.mustAsk {
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
		return allowance{left: max(p.Burst, p.Start-e.Usage), at: now}
	}
	delete(g.of, e.Name)
	g.order = slices.DeleteFunc(g.order, func(name string) bool { return name == e.Name })
	a := before.allowance
	a.exempt, a.unknown = false, !busy
	a.spend(now, max(0, e.Usage-before.usage), p)
	return a
}
