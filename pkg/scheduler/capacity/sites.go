package capacity

import (
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
	observed, tracked bool
}

// usageChange is an amount that is requested of a node, or given back if it is negative.
type usageChange struct {
	node   string
	amount placement.Amount
}

// Observed tells whether the nodes are known in this tick on which instances may run whose
// Shape has that Where.
func (b *nodeUsage) Observed(where string) bool { return b.sites[where] != nil }

// Observe hands in these nodes, with what is requested of them now. It is to be called
// before anything else is asked for that Where in a tick; until then there are none.
func (b *nodeUsage) Observe(where string, candidates placement.Candidates) {
	b.addSite(where, candidates)
}

// Track is Observe for nodes that change only by what is ordered here and what Ended
// reports, as simulated ones do: it holds for all ticks from now on.
func (b *nodeUsage) Track(where string, candidates placement.Candidates) {
	b.addSite(where, candidates).tracked = true
}

// Ended says that an amount is not requested of a node any more that is followed.
func (b *nodeUsage) Ended(node string, amount placement.Amount) {
	b.request(node, placement.Amount{}.Minus(amount))
}

func (b *nodeUsage) addSite(where string, candidates placement.Candidates) *site {
	// What was ordered before is counted among the candidates already.
	at := &site{Site: placement.NewSite(candidates), applied: len(b.changes)}
	for h := range b.allHolders() {
		for _, kept := range h.reserved {
			at.Request(kept.node, kept.amount)
		}
	}
	b.sites[where] = at
	return at
}

// forgetSites forgets what a tick knew of the nodes, except for those that are followed.
func (b *nodeUsage) forgetSites() {
	for where, at := range b.sites {
		if !at.tracked {
			delete(b.sites, where)
			continue
		}
		b.apply(at)
		at.Refresh()
		at.applied, at.observed = 0, false
	}
	b.changes = b.changes[:0]
}

// site is what is known of nodes now.
func (b *nodeUsage) site(where string) *site {
	if !b.Observed(where) {
		b.Observe(where, placement.Candidates{})
	}
	at := b.sites[where]
	b.apply(at)
	return at
}

// apply tells a site what was ordered and reserved since it was last asked for.
func (b *nodeUsage) apply(at *site) {
	for ; at.applied < len(b.changes); at.applied++ {
		c := b.changes[at.applied]
		at.Request(c.node, c.amount)
	}
}

// request notes that an amount is requested of a node from now on.
func (b *nodeUsage) request(node string, amount placement.Amount) {
	b.changes = append(b.changes, usageChange{node, amount})
}

// Room is how many more instances of a shape there was room for at the first look of the
// tick: functions that decide in the same tick do not see what the others take, which
// their orders find out.
func (b *nodeUsage) Room(of Shape) int { return b.site(of.Where).Room(of.Requests) }

// Explain says why there was no room at the first look.
func (b *nodeUsage) Explain(of Shape) string { return b.site(of.Where).Explain(of.Requests) }

// Place picks a node for an instance that is ordered now: first of all where room is
// reserved for its function and has come free, then any with room. The UID is empty for
// a spare instance. intn(n) must return a random number in [0, n).
func (b *nodeUsage) Place(uid string, of Shape, intn func(n int) int) (node string, ok bool) {
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
func (b *nodeUsage) useReservation(uid string, at *site, want placement.Amount) (node string, ok bool) {
	h := b.holders[uid]
	if h == nil {
		return "", false
	}
	for i, kept := range h.reserved {
		// What is reserved for the function does not stand in its own way.
		if at.Fits(kept.node, want, kept.amount) {
			b.dropReservation(h, i)
			b.apply(at)
			return kept.node, true
		}
	}
	return "", false
}
