package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
	scheduling "github.com/windlass-dev/windlass/pkg/scheduler/core"
)

const (
	// besideIdle is for how long a call may wait beside an idle place: until it has sent its
	// ticket, a scheduler knows by a report that the place is idle and its loan is old enough,
	// and has decided; twice, since clocks may go half as fast, and some round trips.
	besideIdle = 2*(core.AskAfter+reportEvery+queue.LoanTerm+scheduling.DefaultTick) + 400*time.Millisecond
	// overtaking is for how long a gateway may hand newer calls than another one's oldest to
	// loans: until these are recalled, as above, and their calls have ended. Most calls take less
	// than half a second, or a second by a slow clock.
	overtaking = besideIdle + time.Second
)

// disturb notes a change that may make calls wait for a while.
func (w *World) disturb() {
	w.disturbances++
	w.disturbed = w.now
}

// disturbFor is a disturbance that lasts.
func (w *World) disturbFor(d time.Duration) {
	w.lasting++
	w.at(d, func() {
		w.lasting--
		w.disturb()
	})
}

// quietSince is since when there was no fault.
func (w *World) quietSince() time.Duration {
	if w.lasting > 0 {
		return w.now
	}
	return w.disturbed
}

// servedSince is who alone serves a unit, and since when; nil if nobody does, or two do.
func (w *World) servedSince(u *unit) (by *served, since time.Duration) {
	for _, n := range w.schedulers {
		if !n.up() {
			continue
		}
		if f := n.program.(*scheduler).lookup(u); f != nil && f.serving() {
			if by != nil {
				return nil, 0
			}
			by = f
		}
	}
	if by == nil {
		return nil, 0
	}
	return by, max(by.servesSince, u.changed, w.quietSince())
}

// lookBesideIdle looks for calls that wait beside idle places.
func (w *World) lookBesideIdle() {
	if w.config.Adversarial { // a recall or a ticket that was lost is not sent again
		return
	}
	for _, in := range w.platform.running() {
		a := in.node.program.(*agent)
		if in.node.paused || a.spare || a.isFull() || w.now-a.full <= besideIdle {
			continue
		}
		f, since := w.servedSince(in.fn)
		if f == nil || w.now-since <= besideIdle || f.scheduler.now().Before(f.tickets.avoiding.Add(besideIdle)) {
			continue
		}
		p := f.stream(in.cid)
		if p == nil || !p.pulled || w.now-p.joinedAt <= besideIdle || f.core.Draining(in.cid) {
			continue
		}
		for _, n := range w.gateways {
			if !n.up() || !n.program.(*gateway).reaches(f) {
				continue
			}
			for _, c := range n.program.(*gateway).calls {
				// By another clock, a ticket may end some time before the call's deadline.
				late := n.now().Add(3 * time.Second).After(c.answerBy())
				if c.fn == in.fn && c.life.Phase() == core.Queued && w.now-max(c.waits, c.wantedCore) > besideIdle && !late {
					w.explain(n.name, fmt.Sprintf("has call %d, which waits since %v beside %s, which is idle since %v; offered %v ago",
						c.number, c.waits, in.cid, a.full, n.now().Sub(c.offered)))
					w.truth.broken(c.callRecord, RuleNobodyBesideIdle)
				}
			}
		}
	}
}

// reaches tells whether a gateway has sent its tickets to who serves a unit for a while.
func (g *gateway) reaches(f *served) bool {
	to, _, known := g.view.route(f.fn.function)
	if !known || to.Addr != f.scheduler.name {
		return false
	}
	now := g.world.now
	i := slices.IndexFunc(g.links, func(l *link) bool { return l.addr == to.Addr })
	return i >= 0 && g.links[i].open && now-g.links[i].since > besideIdle && now-g.routed > besideIdle
}

// overtakes looks at the calls of other gateways that a call overtakes by a loan. Once a gateway
// has handed over a newer call than one of another gateway, it has none that is older, since it
// hands over its oldest first. So all loans that it has begin before, and are recalled soon. A place
// whose call breaks is lost, and a call that wants a core has its place, so that this begins again.
// Where clocks go wrong, gateways do not agree on which call is older, or their scheduler on for how
// long each has waited.
func (w *World) overtakes(g *gateway, c *call) {
	f, since := w.servedSince(c.fn)
	if f == nil || f.scheduler.clock.rate != 1 || g.clock.rate != 1 || w.config.Adversarial {
		return
	}
	newestFirst := f.core.View(f.scheduler.now()).NewestFirst
	for _, n := range w.gateways {
		if n == g.node || !n.up() || n.clock.rate != 1 {
			continue
		}
		for _, other := range n.program.(*gateway).calls {
			if other.fn != c.fn || other.life.Phase() != core.Queued || other.admitted >= c.admitted {
				continue
			}
			other.overtakenBy(g, max(since, other.waits, other.wantedCore, c.fn.broke), newestFirst)
		}
	}
}

// overtakenBy notes that a newer call of another gateway overtakes this one.
func (c *call) overtakenBy(g *gateway, since time.Duration, newestFirst bool) {
	w := g.world
	first, before := c.overtaken[g]
	switch {
	case newestFirst:
		c.overtaken = nil
	case !before || first < since:
		if c.overtaken == nil {
			c.overtaken = make(map[*gateway]time.Duration)
		}
		c.overtaken[g] = w.now
	case w.now-first > overtaking:
		w.truth.broken(c.callRecord, RuleFairBetween)
	}
}

// mayOvertake forgets which newer calls of others a gateway has overtaken, since it has an older one from now
// on: one that was queued again, or was moved to another revision after the first newer one.
func (g *gateway) mayOvertake(older *call) {
	for _, n := range g.world.gateways {
		if n == g.node || !n.up() {
			continue
		}
		for _, c := range n.program.(*gateway).calls {
			if c.fn == older.fn && c.admitted > older.admitted {
				delete(c.overtaken, g)
			}
		}
	}
}

// mayBeAlone notes that a call is handed to an instance by a loan while no scheduler is there, and
// nothing else is wrong. If the instance's machine is off, the gateway will notice that later.
func (w *World) mayBeAlone(c *call, cid invocation.CID) {
	for _, n := range w.schedulers {
		if n.up() && !n.paused {
			return
		}
	}
	lives := false
	for _, in := range w.platform.running() {
		if in.node.paused {
			return
		}
		lives = lives || in.fn == c.fn && in.cid == cid
	}
	if lives && !w.troubled() {
		c.alone, c.disturbances = true, w.disturbances
	}
}
