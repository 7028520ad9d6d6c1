package capacity

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// maxBorrowers is how many peers are kept at most.
const maxBorrowers = 256

// Lender keeps the last requests of peers and the loans to them. The zero value is empty.
type Lender struct{ byPeer map[string]*borrower }

// borrower is a peer with a shortage.
type borrower struct {
	heard     time.Time
	shortages []Shortage
	// granted are the grants by function.
	granted map[string]Grant
}

// Request is what one peer requests. Peers do not send its Shape.
type Request struct {
	Peer string
	Shortage
}

// Receive replaces a peer's requests, and returns the grants for its earlier ones, by
// function.
func (l *Lender) Receive(peer string, shortages []Shortage, now time.Time) map[string]Grant {
	one := l.byPeer[peer]
	if one == nil {
		if len(shortages) == 0 || len(l.byPeer) >= maxBorrowers {
			return nil
		}
		one = &borrower{}
		if l.byPeer == nil {
			l.byPeer = make(map[string]*borrower)
		}
		l.byPeer[peer] = one
	}
	one.heard, one.shortages = now, shortages
	return one.granted
}

// Requests are those of all peers, the longest wait first. Peers without requests, and silent
// ones, are dropped.
func (l *Lender) Requests(now time.Time) (all []Request) {
	for peer, one := range l.byPeer {
		age := now.Sub(one.heard)
		if age >= PeerSilent || len(one.shortages) == 0 {
			delete(l.byPeer, peer)
			continue
		}
		for _, shortage := range one.shortages {
			shortage.Waited += age
			all = append(all, Request{peer, shortage})
		}
	}
	slices.SortFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.UID, b.UID))
	})
	return all
}

// SetGrants records grants to peers, by function, for Receive to return.
func (l *Lender) SetGrants(granted map[string]map[string]Grant) {
	for peer, of := range granted {
		if one := l.byPeer[peer]; one != nil {
			one.granted = of
		}
	}
}

// TrimLoans drops reservations for peers beyond these loans, and reports whether room for some
// of them is still missing.
func (b *nodeUsage) TrimLoans(all map[Loan]int) (short bool) {
	for of, h := range b.lent {
		b.trim(h, all[of])
		if len(h.reserved) == 0 {
			delete(b.lent, of)
		}
	}
	for of, n := range all {
		if h := b.lent[of]; n > 0 && (h == nil || len(h.reserved) < n) {
			return true
		}
	}
	return false
}

// Lend reserves room for a total of n instances of a peer's functions, which have waited that
// long, and has idle instances evicted for it. No function here gets that room.
func (p *Planner) Lend(of Loan, n int, waited time.Duration, now time.Time, evict Evictor) Grant {
	h := p.lent[of]
	if h == nil {
		h = &holder{Beneficiary: Beneficiary{Loan: of}}
	}
	ask := placement.EvictionRequest{Want: of.Requests, IdleFor: p.config.EvictAfter, Waited: waited}
	for len(h.reserved) < n {
		node, ok := p.findNode(h.Beneficiary, of.Where, ask, now, evict)
		if !ok {
			return Grant{Instances: len(h.reserved), Exhausted: true}
		}
		p.reserve(h, node, ask.Want)
		p.lent[of] = h
	}
	return Grant{Instances: len(h.reserved)}
}
