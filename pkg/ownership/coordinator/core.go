package coordinator

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Config has the settings of a Core.
type Config struct {
	// Self is this scheduler. It is not Draining.
	Self ownership.Member
	// TTL is the lifetime of a lease that is not renewed; positive.
	TTL time.Duration
	// Settle is how long a Core that has just begun waits for each further member before it
	// claims anything, 0 or more, at most settleTimes that long in total. So schedulers that
	// start together share the slots from the start; otherwise the first one would claim all
	// and hand most of them off.
	Settle time.Duration
}

// Core decides for one scheduler. Its driver must
//
//   - get a lease and call Leased, keep the lease alive and call Renewed;
//   - list all keys and call Listed, then follow them and call Seen with each change. If it
//     can no longer follow, it calls Interrupted and lists again. It requests a listing only
//     after it has passed on all earlier answers, and drops answers to requests from before
//     Interrupted;
//   - after each of these calls, and at Wake, call Next until that returns false, and pass the
//     result of each transaction to Answered;
//   - get another lease when Lease is 0.
//
// Time must not go back. A Core is not safe for concurrent use.
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
	// registered says that this process has written the member's key.
	registered bool
	draining   bool

	following bool
	waiting   bool // for the answer to a transaction
	// settled are the members for which every held slot is in its place; nil if unknown.
	settled []ownership.Member
}

// New makes a Core that knows nothing. busy reports whether a slot carries work; nil means
// that none does. reportedOwner returns a slot's owner as reported by other schedulers and
// gateways, false if they have reported none; nil means that they are not asked.
func New(config Config, busy func(ownership.Slot) bool, reportedOwner func(ownership.Slot) (ownership.Owner, bool)) *Core {
	if busy == nil {
		busy = func(ownership.Slot) bool { return false }
	}
	if reportedOwner == nil {
		reportedOwner = func(ownership.Slot) (ownership.Owner, bool) { return ownership.Owner{}, false }
	}
	return &Core{config: config, busy: busy, reportedOwner: reportedOwner}
}

// Leased sets the lease under which keys are written from now on.
func (c *Core) Leased(now time.Time, lease Lease) {
	c.lease = lease
	c.Renewed(now)
	if c.view.revision != 0 {
		c.reviewAll(now)
	}
}

// Renewed records that the lease was alive at a time, which may be the time of the request.
func (c *Core) Renewed(now time.Time) {
	c.settling.recordNews(now, c.config.TTL)
	_, unconfirmed := c.Unconfirmed(now)
	c.changed = c.changed || unconfirmed
	c.renewed = now
}

// Lease is the present lease; 0 if the Core has none, or if its lease has ended and it needs
// another.
func (c *Core) Lease() Lease { return c.lease }

// Listed applies a listing. It returns true if the store went back to an earlier revision, see
// View.
func (c *Core) Listed(now time.Time, l Listing) (rewound bool) {
	c.settling.recordNews(now, c.config.TTL)
	if c.view.revision == 0 {
		c.settling.start(now, c.config.Settle)
	}
	if rewound = c.view.Listed(l); rewound {
		// The member's key may exist under an old lease.
		c.registered = false
	}
	c.following = true
	c.reviewAll(now)
	c.reviewPeers(now)
	return rewound
}

// Seen applies changes of keys.
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

// Interrupted records that keys are no longer followed. A transaction that was under way may
// or may not have been committed; the next listing tells.
func (c *Core) Interrupted() { c.following, c.waiting = false, false }

// Following reports whether keys are followed, as far as the Core knows. The Core itself
// detects by transactions that the store went back to an earlier revision, or that a member's
// lease has ended.
func (c *Core) Following() bool { return c.following }

// Answered applies the result of the transaction that Next returned last.
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
		// The member's key ended with its lease, and no change has told of it.
		c.Interrupted()
	default:
		c.lease = 0
	}
}

// Drain makes the Core hand off all slots and claim no more.
func (c *Core) Drain() { c.draining, c.changed = true, true }

// ReleaseAll releases all slots at once, before the lease ends. It is the last call on a Core.
func (c *Core) ReleaseAll() {
	c.releaseAll()
	c.following = false
}

// View is the known content of the store. Callers must not change it.
func (c *Core) View() *View { return &c.view }

// Complete reports whether every slot has an owner, this scheduler or another.
func (c *Core) Complete() bool { return c.following && !c.hasVacant() }

// Unconfirmed reports whether the lease has not been renewed for longer than its lifetime
// while the Core holds slots, and since when. The scheduler rightly goes on serving them: if
// the store is down, no other scheduler can have claimed them, and if it is up, a claim is
// recognised by its epoch. But the scheduler should start nothing new.
func (c *Core) Unconfirmed(now time.Time) (since time.Time, unconfirmed bool) {
	since, may := c.UnconfirmedFrom()
	if !may || now.Before(since) {
		return time.Time{}, false
	}
	return since, true
}

// UnconfirmedFrom is when the ownership becomes unconfirmed if the lease is not renewed again;
// false if the Core holds nothing.
func (c *Core) UnconfirmedFrom() (time.Time, bool) {
	return c.renewed.Add(c.config.TTL), c.n > 0 && !c.renewed.IsZero()
}

func (c *Core) reviewAll(now time.Time) {
	for i := range c.view.slots {
		c.review(now, ownership.Slot(i))
	}
}

// review updates the holdings from a slot's key.
func (c *Core) review(now time.Time, slot ownership.Slot) {
	c.changed = true
	if c.holdings.review(now, slot, &c.view.slots[slot], c.config.Self.ID, c.lease) {
		c.settled = nil
	}
}
