package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// scaling looks at which instances are launched and let go: the rules of a function's core
// once more, by what happened to it.
type scaling struct {
	served *served
	// lost are the instances that ended since the last decision, were needed and have not come back.
	lost      []invocation.CID
	takenOver time.Time
	// settled is how many instances there were at the first decision as an orphan; -1
	// while somebody confirms the ownership, and after the slot was with another scheduler.
	settled int
	// surplus is for how many ticks idle instances were too many.
	surplus int
	// blocked says that the last order had no effect.
	blocked bool
}

// before notes what an event will do to instances, as they are before it.
func (c *scaling) before(e core.Event) {
	switch e := e.(type) {
	case core.OwnershipChanged:
		if e.Term == core.Unserved {
			c.lost, c.blocked, c.settled = nil, false, -1
		} else {
			c.takenOver = c.served.scheduler.now()
		}
	case core.Paused:
		c.lost = nil
	case core.Left:
		if e.Involuntary && !c.served.core.Draining(e.CID) && c.served.tickets.needs(e.CID, c.served.scheduler.now()) {
			c.lost = append(c.lost, e.CID)
		}
	case core.AssignFailed:
		if c.served.serving() && c.served.core.Waiting() > len(c.lost) {
			c.lost = append(c.lost, e.CID)
		}
	case *core.Applied:
		c.blocked = e.Decided.Wanted() > 0 && e.Launched == 0
	}
}

// after looks at what came of an event.
func (c *scaling) after(_ core.Event, effects []core.Effect) {
	w := c.served.scheduler.world
	if c.served.core.Blocked() != c.blocked {
		w.violate(RuleBlockedIfInVain, 0)
	}
	for _, effect := range effects {
		switch effect := effect.(type) {
		case *core.Decided:
			c.decided(effect)
		case core.Connect:
			c.lost = slices.DeleteFunc(c.lost, func(cid invocation.CID) bool { return cid == effect.CID })
		case core.Terminate:
			if c.served.tickets.needs(effect.CID, c.served.scheduler.now()) {
				w.violate(RuleLetGoIdle, 0)
			}
		}
	}
}

// decided looks at what was decided on.
func (c *scaling) decided(d *core.Decided) {
	if d.Snapshot.Lost != len(c.lost) {
		c.served.scheduler.world.violate(RuleLostAreReplaced, 0)
	}
	c.lost = nil
	if d.Snapshot.Failing && d.Snapshot.Creating == 0 && d.Wanted() == 0 && c.wantedIfStarting(d) {
		c.served.scheduler.world.violate(RuleTriedAgain, 0)
	}
	switch {
	case !d.Observed.Unconfirmed:
		c.settled = -1
	case c.settled < 0:
		c.settled = d.Observed.Created + d.Observed.Creating
	}
}

// wantedIfStarting tells whether instances would be wanted if the last start had not failed.
func (c *scaling) wantedIfStarting(d *core.Decided) bool {
	s := d.Snapshot
	s.Failing = false
	params := autoscaler.Params{Tick: c.served.scheduler.config.Tick, StaleAfter: core.StaleAfter}
	return autoscaler.Bound(c.served.core.Spec().Decide(s, params), s, d.Bounds).Create > 0
}

// orders looks whether one more instance may be launched now.
func (c *scaling) orders() {
	f := c.served
	s := f.scheduler
	w, now, o := s.world, s.now(), f.inventory.count()
	heard, most := o.Created+o.Creating-o.Awaited+1, f.core.Spec().Max
	switch {
	case now.Before(s.silentUntil):
		w.violate(RuleHoldAfterPause, 0)
	case o.Awaited > 0 && now.Sub(c.takenOver) < core.HelloTime:
		w.violate(RuleTimeForHello, 0)
	case heard > max(1, most-o.Awaited):
		w.violate(RuleWithinMax, 0)
	case c.settled >= 0 && heard > max(1, c.settled+(c.settled+4)/5):
		w.violate(RuleOrphansAreCautious, 0)
	}
}

// surplusTicks is after how many ticks idle instances must have been let go that are too
// many.
const surplusTicks = 10

// ticked looks whether idle instances were let go that are too many.
func (c *scaling) ticked() {
	f := c.served
	there, idle := 0, 0
	for _, p := range f.pulls {
		if e := f.inventory.find(p.cid); e == nil || e.leaving || !p.pulled || f.core.Draining(p.cid) {
			continue
		}
		if there++; len(p.out) == 0 && f.asks(p.cid) {
			idle++
		}
	}
	if there <= f.core.Spec().Max || idle == 0 {
		c.surplus = 0
		return
	}
	if c.surplus++; c.surplus > surplusTicks {
		f.scheduler.world.violate(RuleSurplusGoes, 0)
	}
}

// asks tells whether an instance waits for calls, as many as it can run.
func (f *served) asks(cid invocation.CID) bool {
	for _, a := range f.tickets.asking {
		if a.cid == cid {
			return a.idle && a.credits+a.loan == f.fn.concurrency
		}
	}
	return false
}
