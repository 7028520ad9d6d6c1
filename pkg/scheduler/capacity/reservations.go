package capacity

import (
	"iter"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// EvictGrace is how long an evicted instance has to end.
const EvictGrace = 10 * time.Second

const (
	// reservationGrace is how much longer a reservation lasts than the instances that were
	// evicted for it, until the node shows the room. A reservation lapses if the room was
	// taken by somebody outside, such as another scheduler.
	reservationGrace = 3 * time.Second
	// leaveTimeout exceeds the time in which an evicted instance ends or is stopped.
	leaveTimeout = 2 * EvictGrace
)

// reservation is room on a node that is kept for an instance, or is becoming free for it. No
// other function gets it: neither one that is called later nor one that needs less.
type reservation struct {
	node   string
	amount placement.Amount
	// until is when it lapses; zero while an evicted instance is still on the node.
	until time.Time
}

// leaver is an instance that was evicted.
type leaver struct {
	node   string
	amount placement.Amount
	// until is how long its end is waited for.
	until time.Time
}

// holder is a function, or a peer, that room is reserved for.
type holder struct {
	Beneficiary
	reserved []reservation
}

// Loan is for whom room is lent: a peer, for instances of one shape.
type Loan struct {
	Peer string
	Shape
}

// allHolders are the functions and peers with reservations.
func (b *nodeUsage) allHolders() iter.Seq[*holder] {
	return func(yield func(*holder) bool) {
		for _, h := range b.holders {
			if !yield(h) {
				return
			}
		}
		for _, h := range b.lent {
			if !yield(h) {
				return
			}
		}
	}
}

// Reserved is how many instances of a function room is reserved for.
func (b *nodeUsage) Reserved(uid string) int {
	if h := b.holders[uid]; h != nil {
		return len(h.reserved)
	}
	return 0
}

// Reserving are the UIDs of the functions that have reservations.
func (b *nodeUsage) Reserving() []string {
	uids := make([]string, 0, len(b.holders))
	for uid := range b.holders {
		uids = append(uids, uid)
	}
	return uids
}

// Leaving are the instances that were evicted and are not known to have gone.
func (b *nodeUsage) Leaving() []Key {
	keys := make([]Key, 0, len(b.leaving))
	for key := range b.leaving {
		keys = append(keys, key)
	}
	return keys
}

// Left says that an instance which was evicted has gone.
func (b *nodeUsage) Left(key Key) { delete(b.leaving, key) }

// Trim drops a function's reservations beyond n.
func (b *nodeUsage) Trim(uid string, n int) {
	if h := b.holders[uid]; h != nil {
		b.trim(h, n)
	}
}

// addReservation reserves room.
func (b *nodeUsage) addReservation(h *holder, node string, amount placement.Amount) {
	h.reserved = append(h.reserved, reservation{node: node, amount: amount})
	b.request(node, amount)
}

func (b *nodeUsage) dropReservation(h *holder, i int) {
	gone := h.reserved[i]
	h.reserved = append(h.reserved[:i], h.reserved[i+1:]...)
	if len(h.reserved) == 0 {
		delete(b.holders, h.Function)
	}
	b.request(gone.node, placement.Amount{}.Minus(gone.amount))
}

// trim drops reservations beyond n; first those whose room is free by now, because it was used
// or is not needed.
func (b *nodeUsage) trim(h *holder, n int) {
	n = max(0, n)
	for i := 0; i < len(h.reserved) && len(h.reserved) > n; {
		if h.reserved[i].until.IsZero() {
			i++
		} else {
			b.dropReservation(h, i)
		}
	}
	for len(h.reserved) > n {
		b.dropReservation(h, len(h.reserved)-1)
	}
}

// markLeaving records that an instance was evicted.
func (b *nodeUsage) markLeaving(in *Idle, now time.Time) {
	b.leaving[in.Key] = leaver{in.Node, in.Requests, now.Add(leaveTimeout)}
	b.freed[in.Node] = b.freed[in.Node].Plus(in.Requests)
}

// expireReservations drops evicted instances whose time is over, and lapsed reservations.
func (b *nodeUsage) expireReservations(now time.Time) {
	b.lapses.dropOld(now)
	clear(b.freed)
	for key, l := range b.leaving {
		if now.After(l.until) {
			delete(b.leaving, key)
			continue
		}
		b.freed[l.node] = b.freed[l.node].Plus(l.amount)
	}
	for h := range b.allHolders() {
		for i := len(h.reserved) - 1; i >= 0; i-- {
			kept := &h.reserved[i]
			_, awaited := b.freed[kept.node]
			switch {
			case awaited:
			case kept.until.IsZero():
				kept.until = now.Add(reservationGrace)
			case now.After(kept.until):
				b.dropReservation(h, i)
				b.lapses.record(h.Beneficiary, now)
			}
		}
	}
}
