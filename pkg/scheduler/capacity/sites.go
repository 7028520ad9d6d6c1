package capacity

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// site is the nodes on which the instances of some functions may run. A tick reads them
// once for all these functions and follows what is ordered since. What others take or
// leave meanwhile, the next tick sees.
type site struct {
	*placement.Site
	applied int
	// observed says that this tick has looked for what moved, and followed that the next
	// one need not read the nodes again.
	observed, followed bool
}

// charge is an amount that is requested of a node, or given back if it is negative.
type charge struct {
	node   string
	amount placement.Amount
}

// Knows tells whether the nodes are known in this tick on which instances may run whose
// Shape has that Where.
func (b *ledger) Knows(where string) bool { return b.sites[where] != nil }

// Observe hands in these nodes, with what is requested of them now. It is to be called
// before anything else is asked for that Where in a tick; until then there are none.
func (b *ledger) Observe(where string, candidates placement.Candidates) {
	b.observe(where, candidates)
}

// Follow is Observe for nodes that change only by what is ordered here and what Ended
// reports, as simulated ones do: it holds for all ticks from now on.
func (b *ledger) Follow(where string, candidates placement.Candidates) {
	b.observe(where, candidates).followed = true
}

// Ended says that an amount is not requested of a node any more that is followed.
func (b *ledger) Ended(node string, amount placement.Amount) {
	b.request(node, placement.Amount{}.Minus(amount))
}

func (b *ledger) observe(where string, candidates placement.Candidates) *site {
	// What was ordered before is counted among the candidates already.
	at := &site{Site: placement.NewSite(candidates), applied: len(b.charges)}
	for h := range b.all() {
		for _, kept := range h.reserved {
			at.Request(kept.node, kept.amount)
		}
	}
	b.sites[where] = at
	return at
}

// forgetSites forgets what a tick knew of the nodes, except for those that are followed.
func (b *ledger) forgetSites() {
	for where, at := range b.sites {
		if !at.followed {
			delete(b.sites, where)
			continue
		}
		b.apply(at)
		at.LookAgain()
		at.applied, at.observed = 0, false
	}
	b.charges = b.charges[:0]
}

// site is what is known of nodes now.
func (b *ledger) site(where string) *site {
	if !b.Knows(where) {
		b.Observe(where, placement.Candidates{})
	}
	at := b.sites[where]
	b.apply(at)
	return at
}

// apply tells a site what was ordered and reserved since it was last asked for.
func (b *ledger) apply(at *site) {
	for ; at.applied < len(b.charges); at.applied++ {
		c := b.charges[at.applied]
		at.Request(c.node, c.amount)
	}
}

// request notes that an amount is requested of a node from now on.
func (b *ledger) request(node string, amount placement.Amount) {
	b.charges = append(b.charges, charge{node, amount})
}

// Room is how many more instances of a shape there was room for at the first look of the
// tick: functions that decide in the same tick do not see what the others take, which
// their orders find out.
func (b *ledger) Room(of Shape) int { return b.site(of.Where).Room(of.Requests) }

// Explain says why there was no room at the first look.
func (b *ledger) Explain(of Shape) string { return b.site(of.Where).Explain(of.Requests) }

// Place picks a node for an instance that is ordered now: first of all where room is
// reserved for its function and has come free, then any with room. The UID is empty for
// a spare instance. intn(n) must return a random number in [0, n).
func (b *ledger) Place(uid string, of Shape, intn func(n int) int) (node string, ok bool) {
	at := b.site(of.Where)
	node, ok = b.useReservation(uid, at, of.Requests)
	if !ok {
		node, ok = at.Pick(of.Requests, intn)
	}
	if ok {
		b.request(node, of.Requests)
	}
	return node, ok
}

// useReservation gives up a reservation of a function whose room has come free, and
// returns its node.
func (b *ledger) useReservation(uid string, at *site, want placement.Amount) (node string, ok bool) {
	h := b.holders[uid]
	if h == nil {
		return "", false
	}
	for i, kept := range h.reserved {
		// What is reserved for the function does not stand in its own way.
		if at.Fits(kept.node, want, kept.amount) {
			b.release(h, i)
			b.apply(at)
			return kept.node, true
		}
	}
	return "", false
}

// observeMoves compares nodes with how they were at the last look, once in a tick.
func (p *Planner) observeMoves(where string, now time.Time) {
	at := p.site(where)
	if at.observed {
		return
	}
	at.observed = true
	since := now.Add(-p.config.Tick)
	for _, n := range at.Nodes() {
		p.moves.look(n, since)
	}
}

// still is for how long nothing has moved on the nodes that could hold an instance of a
// shape if they were empty. It is computed once in a tick for all functions of the shape.
func (p *Planner) still(of Shape, now time.Time) time.Duration {
	last, known := p.stills[of]
	if !known {
		for _, n := range p.site(of.Where).Nodes() {
			if n.Requested = (placement.Amount{}); n.Fits(of.Requests) {
				last = later(last, p.moves.last(n.Name))
			}
		}
		p.stills[of] = last
	}
	return now.Sub(last)
}
