package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// reservation is room on a node that is kept for an instance of a function, here or of
// another scheduler, or that is coming free for it. Nobody else is given it: neither a function that is called later
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

// holder is who has room reserved: a function, or another scheduler.
type holder struct {
	// of is nil for another scheduler.
	of       *function
	reserved []reservation
}

// hold reserves room.
func (r *rooms) hold(h *holder, node string, amount nodepick.Amount) {
	h.reserved = append(h.reserved, reservation{node: node, amount: amount})
	r.holders[h] = struct{}{}
	r.request(node, amount)
}

// release gives up the reservation of that index.
func (r *rooms) release(h *holder, i int) {
	gone := h.reserved[i]
	h.reserved = append(h.reserved[:i], h.reserved[i+1:]...)
	if len(h.reserved) == 0 {
		delete(r.holders, h)
	}
	r.request(gone.node, nodepick.Amount{}.Minus(gone.amount))
}

// keep gives up all reservations of a holder but so many; first those whose room has
// come free, since it was used or is not needed.
func (r *rooms) keep(h *holder, n int) {
	for i := 0; i < len(h.reserved) && len(h.reserved) > max(0, n); {
		if h.reserved[i].until.IsZero() {
			i++
		} else {
			r.release(h, i)
		}
	}
	for len(h.reserved) > max(0, n) {
		r.release(h, len(h.reserved)-1)
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
	for h := range r.holders {
		if f := h.of; f != nil && (s.lookup(f.uid) != f || *f.term.Load() == none) {
			r.keep(h, 0)
			continue
		}
		for i := len(h.reserved) - 1; i >= 0; i-- {
			kept := &h.reserved[i]
			_, awaited := r.freed[kept.node]
			switch {
			case awaited:
			case kept.until.IsZero():
				kept.until = now.Add(settleTime)
			case now.After(kept.until):
				r.release(h, i)
			}
		}
	}
}
