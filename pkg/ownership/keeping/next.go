package keeping

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// settleTimes bounds, in times of Config.Settle, how long members that
	// come one after the other delay the first claim.
	settleTimes = 6
	// returnTime is how long, after silence of the store, those who held
	// slots are waited for. It is above the time of a try to reach the store
	// and the longest pause after it.
	returnTime = 8 * time.Second

	// giftEvery is the time between gifts, of idleGifts slots without work and
	// busyGifts of those with, at most. A member that comes has its share of
	// 1024 slots within half a minute, and no scheduler loses more of its
	// calls' places in a second than it can offer again unnoticed.
	giftEvery = time.Second
	idleGifts = 32
	busyGifts = 5
)

// Next is the transaction to try next; false if there is nothing to do before
// Wake, or one is under way.
func (c *Core) Next(now time.Time) (Txn, bool) {
	if c.waiting || !c.following || c.lease == 0 || !c.fresh && (c.wake.IsZero() || now.Before(c.wake)) {
		return Txn{}, false
	}
	c.fresh, c.wake = false, time.Time{}
	txn, due := c.plan(now)
	c.waiting = due
	return txn, due
}

// Wake is when Next is to be asked again even if there are no news; zero if it
// need not be.
func (c *Core) Wake() time.Time { return c.wake }

func (c *Core) plan(now time.Time) (Txn, bool) {
	if txn, due := c.register(); due {
		return txn, true
	}
	if !c.recorded() {
		// Another process of the same name has come after this one.
		return Txn{}, false
	}
	if c.draining {
		return c.handOver()
	}
	if _, orphan := c.Orphan(now); orphan {
		return Txn{}, false
	}
	if txn, due := c.claim(now); due {
		return txn, true
	}
	return c.rebalance(now)
}

// wakeAt makes Wake no later than a time.
func (c *Core) wakeAt(at time.Time) {
	if c.wake.IsZero() || at.Before(c.wake) {
		c.wake = at
	}
}

// recorded tells whether the member's key is this process's.
func (c *Core) recorded() bool {
	e, known := c.view.members[c.config.Self.ID]
	return known && !e.Absent && e.Lease == c.lease
}

// register writes the member's key where that is due: in any case once, and
// later unless a process of the same name has written it since.
func (c *Core) register() (Txn, bool) {
	self := c.config.Self
	self.Draining = c.draining
	op := Op{Key: Key{Member: self.ID}, Value: self, Lease: c.lease}
	switch e := c.view.members[self.ID]; {
	case !c.registered:
		op.If = Always
	case e.Absent || e.Revision == 0:
		op.If = 0
	case e.Lease == 0, e.Lease == c.lease && e.Value != self:
		op.If = e.Revision
	default:
		return Txn{}, false
	}
	return Txn{Ops: []Op{op}}, true
}

// claim claims what has no owner, if it is this scheduler's turn, and what names
// it without being held.
func (c *Core) claim(now time.Time) (Txn, bool) {
	var txn Txn
	members := c.peers.members
	for i := range c.view.slots {
		slot, r := ownership.Slot(i), &c.view.slots[i]
		due, may := c.due(slot, r, members)
		switch {
		case !may:
		case now.Before(due):
			c.wakeAt(due)
		case len(txn.Ops) < MaxOps:
			txn.Ops = append(txn.Ops, Op{Key: Key{Slot: slot}, If: r.condition(), Value: c.config.Self, Lease: c.lease})
		}
	}
	return txn, len(txn.Ops) > 0
}

// due is when a slot may be claimed; false if it may not.
func (c *Core) due(slot ownership.Slot, r *record, members []ownership.Member) (time.Time, bool) {
	mine := r.names(c.config.Self.ID)
	switch {
	case r.exists && r.lease == c.lease:
		// Somebody may have written another name over it by hand.
		return time.Time{}, !mine
	case r.exists && r.lease != 0:
		// An earlier lease or an earlier process of this name left it.
		return time.Time{}, mine
	}
	holds := c.held[slot] != 0
	wait, may := ownership.Turn(slot, c.config.Self.ID, r.owner, holds, members)
	due := c.vacant[slot].Add(wait)
	if !holds && due.Before(c.calm) {
		// In turn, too, when the time has come.
		due = c.calm.Add(wait)
	}
	return due, may
}

// rebalance gives slots away to members that have been there for some time.
func (c *Core) rebalance(now time.Time) (Txn, bool) {
	members, next := c.peers.trusted(now, c.config.Self.ID)
	if !next.IsZero() {
		c.wakeAt(next)
	}
	if c.holds == 0 || slices.Equal(members, c.settled) {
		return Txn{}, false
	}
	if now.Before(c.calm) {
		c.wakeAt(c.calm)
		return Txn{}, false
	}
	if !now.Before(c.gifts) {
		c.gifts, c.idle, c.busy = now.Add(giftEvery), idleGifts, busyGifts
	}
	held := c.holdings()
	txn, due := c.give(held, members, c.idle, c.busy)
	if due {
		for _, op := range txn.Ops {
			if c.works(op.Key.Slot) {
				c.busy--
			} else {
				c.idle--
			}
		}
		return txn, true
	}
	if _, rest := ownership.Gifts(c.config.Self.ID, held, members, 1, 1); len(rest) > 0 {
		c.wakeAt(c.gifts)
	} else {
		c.settled = members
	}
	return Txn{}, false
}

// handOver gives everything away, for as long as there is somebody.
func (c *Core) handOver() (Txn, bool) {
	return c.give(c.holdings(), c.peers.others(c.config.Self.ID), MaxOps, MaxOps)
}

// give gives slots to one of the members.
func (c *Core) give(held []ownership.Holding, members []ownership.Member, idle, busy int) (Txn, bool) {
	heir, slots := ownership.Gifts(c.config.Self.ID, held, members, idle, busy)
	txn := Txn{Gift: true}
	for _, slot := range slots[:min(len(slots), MaxOps)] {
		txn.Ops = append(txn.Ops, Op{
			Key: Key{Slot: slot}, If: c.view.slots[slot].condition(), Value: heir, Lease: c.peers.lease(heir.ID),
		})
	}
	return txn, len(txn.Ops) > 0
}

func (c *Core) holdings() []ownership.Holding {
	held := make([]ownership.Holding, 0, c.holds)
	for i, epoch := range c.held {
		if slot := ownership.Slot(i); epoch != 0 {
			held = append(held, ownership.Holding{Slot: slot, Busy: c.works(slot)})
		}
	}
	return held
}
