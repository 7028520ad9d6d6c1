package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// reservation is room on a node that is kept for an instance of a function, or that is
// coming free for it. Nobody else is given it: neither a function that is called later
// nor one that needs less.
type reservation struct {
	node   string
	amount nodepick.Amount
	// until is when it lapses; zero as long as something that was told to go is
	// still on the node.
	until time.Time
}

// leaver is an instance that was told to go so that others have room.
type leaver struct {
	node   string
	amount nodepick.Amount
	// until is how long its end is waited for.
	until time.Time
}

const (
	// settleTime is how much longer a reservation lasts than what was to go: until
	// the node is known to have the room. It lapses if somebody who knows nothing of
	// reservations was quicker, such as another scheduler.
	settleTime = 3 * time.Second
	// leaveTime is longer than an instance has that was let go and is then stopped.
	leaveTime = 2 * evictGrace
)

// leave notes that an instance was told to go.
func (r *rooms) leave(key provisioner.Key, node string, amount nodepick.Amount, now time.Time) {
	r.leaving[key] = leaver{node, amount, now.Add(leaveTime)}
	r.freed[node] = r.freed[node].Plus(amount)
}

// hold reserves room for a function.
func (r *rooms) hold(f *function, node string, amount nodepick.Amount) {
	f.reserved = append(f.reserved, reservation{node: node, amount: amount})
	r.holders[f] = struct{}{}
	r.request(node, amount)
}

// release gives up the reservation of that index.
func (r *rooms) release(f *function, i int) {
	gone := f.reserved[i]
	f.reserved = append(f.reserved[:i], f.reserved[i+1:]...)
	if len(f.reserved) == 0 {
		delete(r.holders, f)
	}
	r.request(gone.node, nodepick.Amount{}.Minus(gone.amount))
}

// keep gives up all reservations of a function but so many.
func (r *rooms) keep(f *function, n int) {
	for len(f.reserved) > max(0, n) {
		r.release(f, len(f.reserved)-1)
	}
}

// reviewReservations forgets those that have gone, and reservations that have lapsed
// or whose function is not served here any more.
func (s *Scheduler) reviewReservations(now time.Time) {
	r := &s.rooms
	clear(r.freed)
	for key, l := range r.leaving {
		if now.After(l.until) || !s.deps.Instances.Has(key) {
			delete(r.leaving, key)
			continue
		}
		r.freed[l.node] = r.freed[l.node].Plus(l.amount)
	}
	for f := range r.holders {
		if s.lookup(f.uid) != f || *f.term.Load() == none {
			r.keep(f, 0)
			continue
		}
		for i := len(f.reserved) - 1; i >= 0; i-- {
			kept := &f.reserved[i]
			_, awaited := r.freed[kept.node]
			switch {
			case awaited:
			case kept.until.IsZero():
				kept.until = now.Add(settleTime)
			case now.After(kept.until):
				r.release(f, i)
			}
		}
	}
}
