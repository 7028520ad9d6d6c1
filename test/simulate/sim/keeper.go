package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// settleTime is how long a scheduler that starts waits for others.
const settleTime = 500 * time.Millisecond

// keeper is the core of the product that keeps slots, and around it what its
// shell does.
type keeper struct {
	*node
	scheduler *scheduler
	core      *coordinator.Core
	reader    *reader
	asking    bool // for a lease
	trying    bool // a transaction
	round     int  // of following etcd
	// history is that of etcd which was last listed.
	history int
	wakes   int
	gone    bool
	// held is the epoch in which each function's slot was held after the last step, and taken
	// says that another owner's came since. Since is the history of etcd that the last epoch
	// in which it was held is from, whether the function was there then or not.
	held  []uint64
	taken []bool
	since []int
	was   bool
}

func newKeeper(s *scheduler) *keeper {
	n := len(s.world.functions)
	k := &keeper{node: s.node, scheduler: s, held: make([]uint64, n), taken: make([]bool, n), since: make([]int, n)}
	k.core = coordinator.New(coordinator.Config{
		Self: ownership.Member{ID: s.name, Addr: s.name}, TTL: leaseTTL, Settle: settleTime,
	}, k.works, func(slot ownership.Slot) (ownership.Owner, bool) { return s.view.owners.Owner(slot) })
	k.reader = &reader{node: s.node, listed: k.listed, confirmed: k.confirmed, saw: k.saw, interrupted: k.interrupted, busy: func() bool { return k.trying }}
	return k
}

// works tells whether calls of a slot's functions wait here.
func (k *keeper) works(slot ownership.Slot) bool {
	for _, f := range k.scheduler.served {
		if f.fn.slot == slot && f.core.Waiting() > 0 {
			return true
		}
	}
	return false
}

func (k *keeper) boot() {
	k.lease()
	k.reader.boot()
	k.every(leaseTTL/3, k.renew)
}

func (k *keeper) lease() {
	if k.asking || k.gone {
		return
	}
	k.asking = true
	e, asked := k.world.etcd, k.now()
	e.ask(k.node, func() any { return e.store.Grant(e.now(), leaseTTL) }, func(answer any, ok bool) {
		k.asking = false
		if ok {
			k.core.Leased(asked, answer.(coordinator.Lease))
		}
		k.pump()
	})
}

func (k *keeper) renew() {
	lease := k.core.Lease()
	if lease == 0 {
		k.lease()
		return
	}
	e, asked := k.world.etcd, k.now()
	e.ask(k.node, func() any { return e.store.Renew(e.now(), lease) }, func(answer any, ok bool) {
		switch {
		case !ok || k.core.Lease() != lease:
		case answer.(bool):
			k.core.Renewed(asked)
		default:
			k.lease()
			return
		}
		k.pump()
	})
}

func (k *keeper) listed(l coordinator.Listing, asked time.Time) (rewound bool) {
	k.history = k.world.etcd.history
	if !k.gone {
		rewound = k.core.Listed(k.now(), l)
	}
	if k.scheduler.reader == nil {
		k.scheduler.view.listed(l, asked)
	}
	if !rewound || k.reader.watching == nil {
		k.pump()
	}
	return rewound
}

func (k *keeper) confirmed(asked time.Time) {
	if k.scheduler.reader == nil {
		k.scheduler.view.confirmed(asked)
	}
	k.pump()
}

func (k *keeper) saw(news []coordinator.Entry) {
	k.history = k.world.etcd.history
	k.noteTaken(news)
	if !k.gone {
		k.core.Seen(k.now(), news...)
	}
	if k.scheduler.reader == nil {
		k.scheduler.view.saw(news)
	}
	k.pump()
}

// pump tries the transactions that the core wants, one at a time.
func (k *keeper) pump() {
	k.scheduler.reconsider()
	if k.core.Lease() == 0 {
		k.lease()
		return
	}
	if k.gone || k.trying || k.reader.listing || !k.core.Following() {
		return
	}
	txn, due := k.core.Next(k.now())
	if !due {
		k.sleep()
		return
	}
	k.trying = true
	e, round := k.world.etcd, k.round
	e.ask(k.node, func() any {
		wrong := k.misuse(txn)
		result := e.store.Commit(txn)
		if result.Outcome == coordinator.Done {
			if wrong != "" {
				k.world.violate(wrong, 0)
			}
			e.notify()
		}
		return result
	}, func(answer any, ok bool) {
		if k.round != round {
			return
		}
		k.trying = false
		if ok {
			k.core.Answered(k.now(), txn, answer.(coordinator.Result))
			k.pump()
		}
		if !ok || !k.core.Following() {
			k.reader.restart()
		}
	})
}

// misuse says what would be wrong with writing the slots of a transaction now.
func (k *keeper) misuse(txn coordinator.Txn) Rule {
	self, lease := k.name, k.core.Lease()
	for _, op := range txn.Ops {
		e := k.world.etcd.store.Get(op.Key)
		switch {
		case op.Key.Member != "":
		case !e.Absent && e.Value == op.Value && e.Lease == op.Lease:
			return RuleNothingAnew
		case !e.Absent && e.Lease != 0 && e.Lease != lease && e.Value.ID != self:
			return RuleTakenOnlyIfFree
		case txn.Handoff && (op.Lease == 0 || op.Lease == lease || op.Value.ID == self):
			return RuleGivenForGood
		}
	}
	return ""
}

// audit says whether a slot is held in an earlier epoch than before, or was lost to nobody.
func (k *keeper) audit() Rule {
	var wrong Rule
	for i, fn := range k.world.functions {
		epoch := k.core.Epoch(fn.slot)
		last, there := k.core.View().Owner(fn.slot)
		switch before := k.held[i]; {
		case epoch == 0 && before != 0 && !there && last.ID == k.name && !k.taken[i] && !k.gone:
			wrong = RuleLostToAnother
		case epoch != 0 && epoch < before && k.world.etcd.history == 0:
			wrong = RuleEpochRises
		}
		if epoch != 0 && epoch != k.held[i] {
			k.since[i] = k.history
		}
		k.held[i], k.taken[i] = epoch, false
	}
	return wrong
}

// noteTaken notes whose slots news give to another owner. The last of the news may name this
// scheduler again, under a lease of before: then the slot was lost all the same.
func (k *keeper) noteTaken(news []coordinator.Entry) {
	for _, e := range news {
		for i, fn := range k.world.functions {
			named := e.Key == slotKey(fn) && !e.Absent && e.Lease != 0 && e.Value.ID != k.name
			k.taken[i] = k.taken[i] || named && uint64(e.Revision) > k.held[i]
		}
	}
}

// interrupted is the end of following etcd. What became of a transaction that is
// under way is found by the next listing.
func (k *keeper) interrupted() {
	k.core.Interrupted()
	k.round++
	k.trying = false
}

func (k *keeper) sleep() {
	wake := k.core.Wake()
	if wake.IsZero() {
		return
	}
	k.wakes++
	mine := k.wakes
	k.after(wake.Sub(k.now()), func() {
		if k.wakes == mine {
			k.pump()
		}
	})
}

func (k *keeper) epoch(slot ownership.Slot) (uint64, bool) {
	epoch := k.core.Epoch(slot)
	return epoch, epoch != 0
}

// ready tells whether there is an owner for every slot.
func (k *keeper) ready() bool {
	k.was = k.was || k.core.Complete()
	return k.was
}

// drain gives all slots away, and calls then when that is done or has taken too
// long.
func (k *keeper) drain(then func()) {
	k.core.Drain()
	// What it was given just now must go, too: a listing or a transaction that is under way
	// may be waiting for an etcd that has not answered for a while.
	k.interrupted()
	k.reader.relist()
	k.pump()
	began := k.now()
	var look func()
	look = func() {
		if (k.reader.listing || k.core.Holds() > 0) && k.now().Sub(began) < 2*time.Second {
			k.after(20*time.Millisecond, look)
			return
		}
		k.gone = true
		k.core.ReleaseAll()
		lease, e := k.core.Lease(), k.world.etcd
		e.ask(k.node, func() any {
			e.store.End(lease)
			e.notify()
			return nil
		}, func(any, bool) {})
		then()
	}
	look()
}
