package capacity

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// maxBorrowers bounds how many schedulers are believed to be there.
const maxBorrowers = 256

// Lender is what peers that lack room said last, and what is lent to them. Its zero value
// has heard of none.
type Lender struct{ byPeer map[string]*borrower }

// borrower is a peer that lacks room.
type borrower struct {
	heard     time.Time
	shortages []Shortage
	// granted is what became of them, by function.
	granted map[string]Grant
}

// Request is what one peer asks for. Its Shape is not known from what peers say.
type Request struct {
	Peer string
	Shortage
}

// Receive notes what a peer asks for now, which is all that it asks for, and returns what was
// made of what it asked for before, by function.
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

// Requests is what all peers ask for, what has been waited for longest first. Peers that ask
// for nothing, or say nothing, any more are forgotten.
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

// SetGrants notes what was made for peers that asked, by function, which Hear tells them.
func (l *Lender) SetGrants(granted map[string]map[string]Grant) {
	for peer, of := range granted {
		if one := l.byPeer[peer]; one != nil {
			one.granted = of
		}
	}
}

// TrimLoans gives up what is reserved for peers except for these, and for them what they do
// not ask for any more. It tells whether room is still to be made.
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

// Lend reserves room for n instances in all of a peer's functions, which have waited that
// long, and has idle instances evicted for it. The room is given to nobody here.
func (p *Planner) Lend(of Loan, n int, waited time.Duration, now time.Time, evict Evictor) Grant {
	h := p.lent[of]
	if h == nil {
		h = &holder{}
	}
	ask := placement.EvictionRequest{Want: of.Requests, IdleFor: p.config.EvictAfter, Waited: waited}
	for len(h.reserved) < n {
		node, ok := p.findNode("", of.Where, ask, now, evict)
		if !ok {
			return Grant{Instances: len(h.reserved), Exhausted: true}
		}
		p.reserve(h, node, ask.Want)
		p.lent[of] = h
	}
	return Grant{Instances: len(h.reserved)}
}
