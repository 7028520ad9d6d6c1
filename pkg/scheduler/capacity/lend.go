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
type Lender struct{ of map[string]*borrower }

// borrower is a peer that lacks room.
type borrower struct {
	heard time.Time
	lacks []Lack
	// made is what became of them, by function.
	made map[string]Made
}

// Asked is what one peer asks for. Its Shape is not known from what peers say.
type Asked struct {
	Peer string
	Lack
}

// Hear notes what a peer asks for now, which is all that it asks for, and returns what was
// made of what it asked for before, by function.
func (l *Lender) Hear(peer string, lacks []Lack, now time.Time) map[string]Made {
	one := l.of[peer]
	if one == nil {
		if len(lacks) == 0 || len(l.of) >= maxBorrowers {
			return nil
		}
		one = &borrower{}
		if l.of == nil {
			l.of = make(map[string]*borrower)
		}
		l.of[peer] = one
	}
	one.heard, one.lacks = now, lacks
	return one.made
}

// Asked is what all peers ask for, what has been waited for longest first. Peers that ask
// for nothing, or say nothing, any more are forgotten.
func (l *Lender) Asked(now time.Time) (all []Asked) {
	for peer, one := range l.of {
		age := now.Sub(one.heard)
		if age >= PeerSilent || len(one.lacks) == 0 {
			delete(l.of, peer)
			continue
		}
		for _, lack := range one.lacks {
			lack.Waited += age
			all = append(all, Asked{peer, lack})
		}
	}
	slices.SortFunc(all, func(a, b Asked) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.UID, b.UID))
	})
	return all
}

// Answer notes what was made for peers that asked, by function, which Hear tells them.
func (l *Lender) Answer(made map[string]map[string]Made) {
	for peer, of := range made {
		if one := l.of[peer]; one != nil {
			one.made = of
		}
	}
}

// KeepLent gives up what is reserved for peers except for these, and for them what they do
// not ask for any more. It tells whether room is still to be made.
func (b *ledger) KeepLent(all map[Loan]int) (lacking bool) {
	for of, h := range b.lent {
		b.keep(h, all[of])
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
func (p *Planner) Lend(of Loan, n int, waited time.Duration, now time.Time, evict Evictor) Made {
	h := p.lent[of]
	if h == nil {
		h = &holder{}
	}
	ask := placement.Ask{Want: of.Requests, IdleFor: p.config.EvictAfter, Waited: waited}
	for len(h.reserved) < n {
		node, ok := p.free("", of.Where, ask, now, evict)
		if !ok {
			return Made{Instances: len(h.reserved), Exhausted: true}
		}
		p.reserve(h, node, ask.Want)
		p.lent[of] = h
	}
	return Made{Instances: len(h.reserved)}
}
