package coordinator

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Config of a Core.
type Config struct {
	// Self is the scheduler. It is not Draining.
	Self ownership.Member
	// TTL is how long the store keeps a lease that is not renewed; positive.
	TTL time.Duration
	// Settle is how long a Core that has just begun waits for further members
	// before it claims anything, 0 or more: schedulers that start together
	// share the slots from the start. Otherwise the first one takes all, and
	// gives most of them away again. It waits settleTimes that long at most.
	Settle time.Duration
}

// Core decides for one scheduler. Whoever drives it
//
//   - gets a lease and tells Leased, keeps it alive and tells Renewed;
//   - lists all keys and tells Listed, then follows them and tells Seen of each
//     change, and Interrupted if it cannot go on, whereupon it lists again. A
//     listing is asked for after all was told that had been answered before, and
//     what was asked for before Interrupted is not told after it;
//   - after all of these, and at Wake, asks Next until there is nothing to do,
//     and tells each time what became of the transaction by Answered;
//   - gets another lease when Lease is 0.
//
// Time only moves forward. A Core is not safe for concurrent use.
type Core struct {
	config        Config
	busy          func(ownership.Slot) bool
	reportedOwner func(ownership.Slot) (ownership.Owner, bool)
	view          View

	holdings
	wakeup
	settling settling
	peers    peers
	handoffs handoffBudget

	lease   Lease
	renewed time.Time // when the lease was last known to live
	// registered says that the member's key was written once.
	registered bool
	draining   bool

	following bool
	waiting   bool // for the answer to a transaction
	// settled are the members among whom every slot that is held is in its
	// place; nil if that is not known.
	settled []ownership.Member
}

// New makes a Core that knows nothing. Works tells whether a slot carries work;
// nil is that none does. Named tells who owns a slot as far as other schedulers and
// gateways have said, false if they have not; nil is that they are not asked.
func New(config Config, busy func(ownership.Slot) bool, reportedOwner func(ownership.Slot) (ownership.Owner, bool)) *Core {
	if busy == nil {
		busy = func(ownership.Slot) bool { return false }
	}
	if reportedOwner == nil {
		reportedOwner = func(ownership.Slot) (ownership.Owner, bool) { return ownership.Owner{}, false }
	}
	return &Core{config: config, busy: busy, reportedOwner: reportedOwner}
}

// Leased takes the lease under which keys are written from now on.
func (c *Core) Leased(now time.Time, lease Lease) {
	c.lease = lease
	c.Renewed(now)
	if c.view.revision != 0 {
		c.reviewAll(now)
	}
}

// Renewed takes note that the lease lived at a time, which may be that of the
// request.
func (c *Core) Renewed(now time.Time) {
	c.settling.recordNews(now, c.config.TTL)
	_, unconfirmed := c.Unconfirmed(now)
	c.changed = c.changed || unconfirmed
	c.renewed = now
}

// Lease is the lease in use; 0 if there is none, or it has turned out to have
// ended and another is needed.
func (c *Core) Lease() Lease { return c.lease }

// Listed takes a listing. It returns true if the store went back to an earlier
// revision, see View.
func (c *Core) Listed(now time.Time, l Listing) (rewound bool) {
	c.settling.recordNews(now, c.config.TTL)
	if c.view.revision == 0 {
		c.settling.start(now, c.config.Settle)
	}
	if rewound = c.view.Listed(l); rewound {
		// The member's key may be there, under a lease of long ago.
		c.registered = false
	}
	c.following = true
	c.reviewAll(now)
	c.reviewPeers(now)
	return rewound
}

// Seen takes changes of keys.
func (c *Core) Seen(now time.Time, entries ...Entry) {
	c.settling.recordNews(now, c.config.TTL)
	members := false
	for _, e := range entries {
		switch {
		case !c.view.Apply(e):
		case e.Key.Member == "":
			c.review(now, e.Key.Slot)
		default:
			members = true
		}
	}
	if members {
		c.reviewPeers(now)
	}
}

func (c *Core) reviewPeers(now time.Time) {
	c.changed = true
	if more := c.peers.review(now, &c.view); more {
		c.settling.extend(now, c.config.Settle)
	}
}

// Interrupted takes note that keys are not followed any more. A transaction that
// was under way may have been carried out or not: the next listing tells.
func (c *Core) Interrupted() { c.following, c.waiting = false, false }

// Following tells whether keys are followed, as far as the Core knows. It finds
// out by itself when the store went back to an earlier revision.
func (c *Core) Following() bool { return c.following }

// Answered takes the result of the transaction that Next returned last.
func (c *Core) Answered(now time.Time, txn Txn, result Result) {
	c.waiting, c.changed = false, true
	switch {
	case result.Outcome != NoLease && result.Revision < c.view.revision:
		c.Interrupted()
	case result.Outcome == Done:
		for _, op := range txn.Ops {
			c.registered = c.registered || op.Key.Member != ""
			c.Seen(now, Entry{Key: op.Key, Value: op.Value, Lease: op.Lease, Revision: result.Revision})
		}
	case result.Outcome == Refused:
		c.Seen(now, result.Found...)
	case txn.Handoff:
		c.peers.markEnded(txn.Ops[0].Lease)
	default:
		c.lease = 0
	}
}

// Drain makes the Core hand off everything: it claims nothing more.
func (c *Core) Drain() { c.draining, c.changed = true, true }

// ReleaseAll releases all slots at once, before the lease is ended. It is the last call
// of a Core.
func (c *Core) ReleaseAll() {
	c.releaseAll()
	c.following = false
}

// View is what is known of the store. It must not be changed.
func (c *Core) View() *View { return &c.view }

// Complete tells whether every slot has an owner, here or elsewhere.
func (c *Core) Complete() bool { return c.following && !c.hasVacant() }

// Unconfirmed reports whether, and since when, the lease has not been renewed for
// longer than it lasts, though slots are held and no other owner is known. To go on
// serving them is right: if the store is away no other scheduler can have claimed
// them, and if it is not, the other owner is found by its epoch. But nothing new is
// claimed or handed off.
func (c *Core) Unconfirmed(now time.Time) (since time.Time, unconfirmed bool) {
	since, may := c.UnconfirmedFrom()
	if !may || now.Before(since) {
		return time.Time{}, false
	}
	return since, true
}

// UnconfirmedFrom is when the ownership will be unconfirmed if the lease is not renewed
// again; false if it will not be, since no slot is held.
func (c *Core) UnconfirmedFrom() (time.Time, bool) {
	return c.renewed.Add(c.config.TTL), c.n > 0 && !c.renewed.IsZero()
}

func (c *Core) reviewAll(now time.Time) {
	for i := range c.view.slots {
		c.review(now, ownership.Slot(i))
	}
}

// review brings what is held in line with a slot's key.
func (c *Core) review(now time.Time, slot ownership.Slot) {
	c.changed = true
	if c.holdings.review(now, slot, &c.view.slots[slot], c.config.Self.ID, c.lease) {
		c.settled = nil
	}
}
