package coordinator

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Next returns the transaction to try next; false if nothing is due before Wake, or if one is
// under way.
func (c *Core) Next(now time.Time) (Txn, bool) {
	if c.waiting || !c.following || c.lease == 0 || !c.pending(now) {
		return Txn{}, false
	}
	c.wakeup = wakeup{}
	txn, due := c.plan(now)
	c.waiting = due
	return txn, due
}

func (c *Core) plan(now time.Time) (Txn, bool) {
	if txn, due := c.register(); due {
		return txn, true
	}
	if !c.isRegistered() {
		// Another process of the same name has replaced this one.
		return Txn{}, false
	}
	if c.draining {
		return c.handOver()
	}
	if _, unconfirmed := c.Unconfirmed(now); unconfirmed {
		return Txn{}, false
	}
	if txn, due := c.claim(now); due {
		return txn, true
	}
	return c.rebalance(now)
}

// isRegistered reports whether the member's key is this process's.
func (c *Core) isRegistered() bool {
	e, known := c.view.members[c.config.Self.ID]
	return known && !e.Absent && e.Lease == c.lease
}

// register writes the member's key if that is due: once at first, and later unless a newer
// process of the same name has written it.
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

// recheckOwnerAfter is how long a reported owner of a slot counts while the Core waits for it.
const recheckOwnerAfter = time.Second

// claim claims slots without an owner when it is this scheduler's turn, and slots whose keys
// name it although it does not hold them.
func (c *Core) claim(now time.Time) (Txn, bool) {
	var txn Txn
	members := c.peers.members
	for i := range c.view.slots {
		slot, r := ownership.Slot(i), &c.view.slots[i]
		due, may := c.due(slot, r, members)
		switch {
		case !may:
		case now.Before(due):
			c.wakeBy(earliest(due, now.Add(recheckOwnerAfter)))
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
		// Another name may have been written over it by hand.
		return time.Time{}, !mine
	case r.exists && r.lease != 0:
		// An earlier lease or process of this scheduler left it.
		return time.Time{}, mine
	}
	holds := c.epochs[slot] != 0
	last := c.lastOwner(slot, r)
	wait, may := ownership.ClaimDelay(slot, c.config.Self.ID, last, holds, members)
	from := c.vacant[slot]
	if !holds {
		from = latest(from, c.returned(last.ID))
	}
	return from.Add(wait), may
}

// lastOwner is the owner that a slot's key named last, or this scheduler if others report that
// the key has named it since: the slot was handed off to this scheduler while it was cut off
// from the store, and its lease has ended, so that no listing shows the handoff. Then it need
// not wait for the previous owner.
func (c *Core) lastOwner(slot ownership.Slot, r *record) ownership.Owner {
	if reported, known := c.reportedOwner(slot); known && reported.ID == c.config.Self.ID && reported.Epoch > r.owner.Epoch {
		return reported
	}
	return r.owner
}

// returned is when the last owner of a slot has come back, or is no longer waited for. An
// owner that is a member again need not hold the slot: it may have missed the handoff, and
// then claims it in its turn.
func (c *Core) returned(owner string) time.Time {
	if a, member := c.peers.since[owner]; member {
		return a.at
	}
	return c.settling.until
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// rebalance hands off slots to members that have been present for some time.
func (c *Core) rebalance(now time.Time) (Txn, bool) {
	members, next := c.peers.trusted(now, c.config.Self.ID)
	if !next.IsZero() {
		c.wakeBy(next)
	}
	if c.n == 0 || slices.Equal(members, c.settled) {
		return Txn{}, false
	}
	if now.Before(c.settling.until) {
		c.wakeBy(c.settling.until)
		return Txn{}, false
	}
	c.handoffs.refill(now)
	held := c.list(c.busy)
	if txn, due := c.handOff(held, members, c.handoffs.idle, c.handoffs.busy); due {
		c.handoffs.spend(txn.Ops, c.busy)
		return txn, true
	}
	if _, rest := ownership.Handoffs(c.config.Self.ID, held, members, 1, 1); len(rest) > 0 {
		c.wakeBy(c.handoffs.refillAt)
	} else {
		c.settled = members
	}
	return Txn{}, false
}

// handOver hands off all slots while any other member exists.
func (c *Core) handOver() (Txn, bool) {
	return c.handOff(c.list(c.busy), c.peers.others(c.config.Self.ID), MaxOps, MaxOps)
}

// handOff hands off slots to one of the members.
func (c *Core) handOff(held []ownership.Holding, members []ownership.Member, idle, busy int) (Txn, bool) {
	receiver, slots := ownership.Handoffs(c.config.Self.ID, held, members, idle, busy)
	txn := Txn{Handoff: true}
	for _, slot := range slots[:min(len(slots), MaxOps)] {
		txn.Ops = append(txn.Ops, Op{
			Key: Key{Slot: slot}, If: c.view.slots[slot].condition(), Value: receiver, Lease: c.peers.lease(receiver.ID),
		})
	}
	return txn, len(txn.Ops) > 0
}
