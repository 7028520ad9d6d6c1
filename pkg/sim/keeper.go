package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/keeping"
)

// settleTime is how long a scheduler that starts waits for others.
const settleTime = 500 * time.Millisecond

// reader lists and watches etcd for a node, again and again.
type reader struct {
	*node
	listed      func(keeping.Listing)
	saw         func([]keeping.Entry)
	interrupted func()
	tries       int
	watching    *watch
	busy        bool
}

func (r *reader) boot() {
	if r.busy {
		return
	}
	r.busy = true
	e := r.world.etcd
	e.ask(r.node, func() any { return e.listing() }, func(answer any, ok bool) {
		r.busy = false
		if !ok {
			r.again()
			return
		}
		l := answer.(keeping.Listing)
		r.tries = 0
		r.listed(l)
		r.watching = e.watch(r.node, l.Revision, r.saw, func() {
			r.watching = nil
			r.interrupted()
			r.again()
		})
	})
}

// restart lists again.
func (r *reader) restart() {
	if r.watching != nil {
		r.watching.over = true
		r.watching = nil
	}
	r.boot()
}

// recheckEvery is how often what is known is compared with all there is.
const recheckEvery = 4 * time.Second

// recheck lists from time to time what is followed, too.
func (r *reader) recheck() {
	e := r.world.etcd
	r.after(recheckEvery, func() {
		if r.watching == nil {
			r.recheck()
			return
		}
		e.ask(r.node, func() any { return e.listing() }, func(answer any, ok bool) {
			if ok && r.watching != nil {
				r.listed(answer.(keeping.Listing))
			}
			r.recheck()
		})
	})
}

func (r *reader) again() {
	r.tries++
	r.after(min(time.Duration(r.tries)*50*time.Millisecond, time.Second), r.boot)
}

// keeper is the core of the product that keeps slots, and around it what its
// shell does.
type keeper struct {
	*node
	scheduler *scheduler
	core      *keeping.Core
	reader    *reader
	asking    bool // for a lease
	trying    bool // a transaction
	// history is that of etcd which was last listed.
	history int
	wakes   int
	gone    bool
	was     bool
}

func newKeeper(s *scheduler) *keeper {
	k := &keeper{node: s.node, scheduler: s}
	k.core = keeping.New(keeping.Config{
		Self: ownership.Member{ID: s.name, Addr: s.name}, TTL: leaseTTL, Settle: settleTime,
	}, k.works)
	k.reader = &reader{node: s.node, listed: k.listed, saw: k.saw, interrupted: k.core.Interrupted}
	return k
}

// works tells whether calls of a slot's functions wait here.
func (k *keeper) works(slot ownership.Slot) bool {
	for _, f := range k.scheduler.served {
		if f.fn.slot == slot && f.queue.Waiting() > 0 {
			return true
		}
	}
	return false
}

func (k *keeper) boot() {
	k.lease()
	k.reader.boot()
	k.reader.recheck()
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
			k.core.Leased(asked, answer.(keeping.Lease))
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

func (k *keeper) listed(l keeping.Listing) {
	k.history = k.world.etcd.history
	k.core.Listed(k.now(), l)
	k.scheduler.view.listed(l)
	k.pump()
}

func (k *keeper) saw(news []keeping.Entry) {
	k.core.Seen(k.now(), news...)
	k.scheduler.view.saw(news)
	k.pump()
}

// pump tries the transactions that the core wants, one at a time.
func (k *keeper) pump() {
	k.scheduler.reconsider()
	if k.gone || k.trying || !k.core.Following() {
		return
	}
	if k.core.Lease() == 0 {
		k.lease()
	}
	txn, due := k.core.Next(k.now())
	if !due {
		k.sleep()
		return
	}
	k.trying = true
	e := k.world.etcd
	e.ask(k.node, func() any {
		result := e.store.Commit(txn)
		if result.Outcome == keeping.Done {
			e.notify()
		}
		return result
	}, func(answer any, ok bool) {
		k.trying = false
		if !ok {
			k.core.Interrupted()
			k.reader.restart()
			return
		}
		k.core.Answered(k.now(), txn, answer.(keeping.Result))
		if !k.core.Following() {
			k.reader.restart()
		}
		k.pump()
	})
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
	k.pump()
	began := k.now()
	var look func()
	look = func() {
		if k.core.Holds() > 0 && k.now().Sub(began) < 2*time.Second {
			k.after(20*time.Millisecond, look)
			return
		}
		k.gone = true
		k.core.LetGo()
		if k.reader.watching != nil {
			// The directory goes on to follow.
			k.reader.watching.saw = k.scheduler.view.saw
		}
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
