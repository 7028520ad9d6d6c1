package scheduler

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// askers are other schedulers that lack room, as they said last.
type askers struct {
	mu sync.Mutex
	of map[string]*asker
}

type asker struct {
	heard time.Time
	wants []roomWant // without their placements
	// made is what became of them, by function.
	made map[string]madeRoom
	// holders are what is reserved for it. Only Run's goroutine uses them.
	holders map[placement]*holder
}

// maxAskers bounds how many schedulers are believed to be there.
const maxAskers = 256

// hear notes what another scheduler asks for, and returns what was made of what it asked
// for before.
func (n *askers) hear(id string, wants []roomWant, now time.Time) map[string]madeRoom {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.of[id]
	if one == nil {
		if len(wants) == 0 || len(n.of) >= maxAskers {
			return nil
		}
		one = &asker{holders: make(map[placement]*holder)}
		if n.of == nil {
			n.of = make(map[string]*asker)
		}
		n.of[id] = one
	}
	one.heard, one.wants = now, wants
	return one.made
}

// askerWant is what one of them asks for.
type askerWant struct {
	roomWant
	id  string
	who *asker
}

// asked are what all ask for, who has waited longest first; and those that ask for
// nothing, or say nothing, any more, which are forgotten.
func (n *askers) asked(now time.Time) (wants []askerWant, gone []*asker) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, one := range n.of {
		age := now.Sub(one.heard)
		if age >= peerSilent || len(one.wants) == 0 {
			delete(n.of, id)
			gone = append(gone, one)
			continue
		}
		for _, w := range one.wants {
			w.waited += age
			wants = append(wants, askerWant{w, id, one})
		}
	}
	slices.SortFunc(wants, func(a, b askerWant) int {
		return cmp.Or(cmp.Compare(b.waited, a.waited), cmp.Compare(a.id, b.id), cmp.Compare(a.uid, b.uid))
	})
	return wants, gone
}

// answer notes what was made for those that asked.
func (n *askers) answer(made map[*asker]map[string]madeRoom) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for who, of := range made {
		who.made = of
	}
}

// makeRoomForOthers lets idle instances go for functions of other schedulers that
// have calls, no instance and no room; after all that functions of this scheduler want.
// The room is reserved: nobody here is given it.
func (s *Scheduler) makeRoomForOthers(known *crowd) {
	now := s.deps.Now()
	wants, gone := s.askers.asked(now)
	for _, one := range gone {
		for _, h := range one.holders {
			s.rooms.keep(h, 0)
		}
	}
	made, wanted := make(map[*asker]map[string]madeRoom), make(map[*holder]bool)
	for _, w := range wants {
		if made[w.who] == nil {
			made[w.who] = make(map[string]madeRoom)
		}
		h, of := s.makeRoomFor(w, known, now)
		made[w.who][w.uid] = of
		wanted[h] = true
	}
	for who := range made {
		for of, h := range who.holders {
			if !wanted[h] {
				s.rooms.keep(h, 0)
				delete(who.holders, of)
			}
		}
	}
	s.askers.answer(made)
}

// makeRoomFor does that for one want.
func (s *Scheduler) makeRoomFor(w askerWant, known *crowd, now time.Time) (*holder, madeRoom) {
	f := s.lookup(w.uid)
	if f == nil {
		return nil, madeRoom{exhausted: true}
	}
	fn, where := f.current(), f.place()
	want := s.deps.Instances.Requests(fn)
	of := placement{want, where}
	h := w.who.holders[of]
	if h == nil {
		h = &holder{}
		w.who.holders[of] = h
	}
	s.rooms.keep(h, w.n)
	if len(h.reserved) < w.n {
		if s.deps.Runtimes != nil {
			s.spares.crowd(now.Add(crowdedFor))
		}
		if !known.gathered {
			s.gather(known, now)
		}
	}
	ask := nodepick.Ask{Want: want, IdleFor: s.config.EvictAfter, Waited: w.waited}
	for len(h.reserved) < w.n {
		if !s.reserve(h, where, fn, known, ask) {
			return h, madeRoom{len(h.reserved), true}
		}
	}
	return h, madeRoom{n: len(h.reserved)}
}
