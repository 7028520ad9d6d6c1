package capacity

import (
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// site is the set of nodes on which the instances of some functions may run. A tick reads them
// once for all these functions and tracks its own launches. Changes by others become visible
// in the next tick.
type site struct {
	*placement.Site
	applied int
	// observed says that this tick has looked for changes. tracked says that the next one need
	// not read the nodes again.
	observed, tracked bool
}

// usageChange is an amount that is requested of a node, or given back if it is negative.
type usageChange struct {
	node   string
	amount placement.Amount
}

// Observed reports whether this tick has read the nodes for that Where.
func (b *nodeUsage) Observed(where string) bool { return b.sites[where] != nil }

// Observe sets the nodes for a Where, with their present requests. Call it before everything
// else for that Where in a tick; until then there are no nodes.
func (b *nodeUsage) Observe(where string, candidates placement.Candidates) {
	b.addSite(where, candidates)
}

// Track is Observe for nodes that change only by launches here and by Ended, such as simulated
// ones: it holds for all later ticks.
func (b *nodeUsage) Track(where string, candidates placement.Candidates) {
	b.addSite(where, candidates).tracked = true
}

// Ended subtracts requests from a tracked node.
func (b *nodeUsage) Ended(node string, amount placement.Amount) {
	b.request(node, placement.Amount{}.Minus(amount))
}

func (b *nodeUsage) addSite(where string, candidates placement.Candidates) *site {
	// The candidates already include earlier launches.
	at := &site{Site: placement.NewSite(candidates), applied: len(b.changes)}
	for h := range b.allHolders() {
		for _, kept := range h.reserved {
			at.Request(kept.node, kept.amount)
		}
	}
	b.sites[where] = at
	return at
}

// forgetSites drops the tick's view of the nodes, except for tracked ones.
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

// site is the present state of the nodes for a Where.
func (b *nodeUsage) site(where string) *site {
	if !b.Observed(where) {
		b.Observe(where, placement.Candidates{})
	}
	at := b.sites[where]
	b.apply(at)
	return at
}

// apply adds to a site the launches and reservations since its last use.
func (b *nodeUsage) apply(at *site) {
	for ; at.applied < len(b.changes); at.applied++ {
		c := b.changes[at.applied]
		at.Request(c.node, c.amount)
	}
}

// request adds requests to a node.
func (b *nodeUsage) request(node string, amount placement.Amount) {
	b.changes = append(b.changes, usageChange{node, amount})
}

// Room is how many more instances of a shape fitted at the first look of the tick. Functions
// that decide in the same tick do not see each other's launches; Place does.
func (b *nodeUsage) Room(of Shape) int { return b.site(of.Where).Room(of.Requests) }

// Busy reports whether an instance of a shape that is launched now would come to a node on which
// more threads want to run than there are cores.
func (b *nodeUsage) Busy(of Shape) bool { return b.site(of.Where).Busy(of.Requests) }

// CouldHold reports whether some node could hold an instance of a shape once everything that may
// go has gone.
func (b *nodeUsage) CouldHold(of Shape) bool { return b.site(of.Where).CouldFit(of.Requests) }

// Explain says why there was no room at the first look.
func (b *nodeUsage) Explain(of Shape) string { return b.site(of.Where).Explain(of.Requests) }

// Place picks a node for an instance that is launched now: first one where reserved room of
// its function has become free, then any with room. The UID is empty for a spare instance.
// intn(n) must return a random number in [0, n).
func (b *nodeUsage) Place(uid string, of Shape, intn func(n int) int) (node string, ok bool) {
	at := b.site(of.Where)
	node, ok = b.useReservation(uid, at, of.Requests)
	if !ok {
		node, ok = at.Pick(of.Requests, intn)
	}
	if ok {
		b.request(node, of.Requests)
		delete(b.lapses, Beneficiary{Function: uid})
	}
	return node, ok
}

// useReservation removes a reservation of a function whose room has become free, and returns
// its node.
func (b *nodeUsage) useReservation(uid string, at *site, want placement.Amount) (node string, ok bool) {
	h := b.holders[uid]
	if h == nil {
		return "", false
	}
	for i, kept := range h.reserved {
		// The function's own reservation does not block it.
		if at.Fits(kept.node, want, kept.amount) {
			b.dropReservation(h, i)
			b.apply(at)
			return kept.node, true
		}
	}
	return "", false
}
