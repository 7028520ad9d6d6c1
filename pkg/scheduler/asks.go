package scheduler

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// maxWants bounds what is asked of other schedulers, by what room depends on,
	// and maxWanted for how many instances each.
	maxWants, maxWanted = 8, 256
	// peerSilent is how long a scheduler may say nothing before nothing is hoped of
	// it, or made for it.
	peerSilent = 3 * ownership.BeatEvery
	// exhaustedFor is how long a scheduler that has no more to give is not asked for
	// more.
	exhaustedFor = 4 * ownership.BeatEvery
)

// roomWant is room that is lacked for first instances, and not to be had here.
type roomWant struct {
	of placement
	// uid is a function that lacks it.
	uid string
	n   int
	// waited is how long the oldest call has waited.
	waited time.Duration
}

// asks are what this scheduler asks of others. It asks each room of one of them only, so
// that no more idle instances go than are needed: what one has made stays with it, and
// what it cannot make is asked of the next. Two may make the same room only while what one
// was asked for and did not make is asked of another, and its late answer is on the way.
type asks struct {
	self string

	mu    sync.Mutex
	wants []roomWant
	peers map[string]*askedPeer
}

// askedPeer is another scheduler.
type askedPeer struct {
	heard time.Time
	of    map[placement]*askedRoom
}

// askedRoom is what another scheduler was asked for, and what it has made.
type askedRoom struct {
	asked, made int
	// since is since when it has been asked for more than it has made; zero if it
	// is not.
	since time.Time
	// exhaustedUntil is until when no more is asked of it, and tried says that it
	// once could not make what it was asked for.
	exhaustedUntil time.Time
	tried          bool
}

func newAsks(self string) asks { return asks{self: self, peers: make(map[string]*askedPeer)} }

// set replaces what is lacked: those that have waited longest.
func (a *asks) set(wants []roomWant) {
	slices.SortFunc(wants, func(x, y roomWant) int {
		return cmp.Or(cmp.Compare(y.waited, x.waited), cmp.Compare(x.uid, y.uid))
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wants = wants[:min(len(wants), maxWants)]
	for _, p := range a.peers {
		maps.DeleteFunc(p.of, func(of placement, _ *askedRoom) bool {
			return !slices.ContainsFunc(a.wants, func(w roomWant) bool { return w.of == of })
		})
	}
}

// ask is what another scheduler is asked for now, all of it.
func (a *asks) ask(to string, now time.Time) []roomWant {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.alive(now)
	at := slices.Index(ids, to)
	if at < 0 {
		return nil // it has said nothing yet
	}
	var asked []roomWant
	for _, w := range a.wants {
		offers := make([]offer, len(ids))
		for i, id := range ids {
			r := a.peers[id].room(w.of)
			offers[i] = offer{r.made, now.Before(r.exhaustedUntil)}
		}
		r := a.peers[to].room(w.of)
		r.asked = divideWant(min(w.n, maxWanted), offers)[at]
		switch {
		case r.asked <= r.made:
			r.since = time.Time{}
		case r.since.IsZero():
			r.since = now
		}
		if w.n = r.asked; w.n > 0 {
			asked = append(asked, w)
		}
	}
	return asked
}

// madeRoom is what a scheduler says that it has made.
type madeRoom struct {
	n         int
	exhausted bool
}

// answered notes what another scheduler has made. One that says nothing for as long as
// it takes to be silent knows of no such thing, or has nothing.
func (a *asks) answered(by string, made map[placement]madeRoom, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.peers[by]
	if p == nil {
		p = &askedPeer{of: make(map[placement]*askedRoom)}
		a.peers[by] = p
	}
	p.heard = now
	for of, r := range p.of {
		m := made[of]
		r.made = min(m.n, r.asked)
		overdue := !r.since.IsZero() && now.Sub(r.since) >= peerSilent
		if r.made < r.asked && (m.exhausted || overdue) {
			r.exhaustedUntil, r.tried, r.since = now.Add(exhaustedFor), true, time.Time{}
		}
	}
	maps.DeleteFunc(a.peers, func(_ string, p *askedPeer) bool { return now.Sub(p.heard) > time.Minute })
}

// hope tells whether another scheduler makes room, or may yet.
func (a *asks) hope(of placement, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.ContainsFunc(a.wants, func(w roomWant) bool { return w.of == of }) {
		return false // too many others have waited longer
	}
	return slices.ContainsFunc(a.alive(now), func(id string) bool {
		r := a.peers[id].room(of)
		return r.made > 0 || !r.tried
	})
}

// alive are the schedulers that answer, in an order that is this scheduler's own: so
// not all ask the same one first.
func (a *asks) alive(now time.Time) []string {
	var ids []string
	for id, p := range a.peers {
		if now.Sub(p.heard) < peerSilent {
			ids = append(ids, id)
		}
	}
	turn := func(id string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(a.self + "\x00" + id))
		return h.Sum64()
	}
	slices.SortFunc(ids, func(x, y string) int { return cmp.Or(cmp.Compare(turn(x), turn(y)), cmp.Compare(x, y)) })
	return ids
}

func (p *askedPeer) room(of placement) *askedRoom {
	r := p.of[of]
	if r == nil {
		r = &askedRoom{}
		p.of[of] = r
	}
	return r
}

// offer is what one scheduler has made, and whether it has no more.
type offer struct {
	made      int
	exhausted bool
}

// divideWant divides what is wanted: what a scheduler has made is asked of it, and the rest
// evenly of those that may have more. It is never more than is wanted in all.
func divideWant(want int, offers []offer) []int {
	asked, able := make([]int, len(offers)), 0
	for i, o := range offers {
		asked[i] = min(o.made, want)
		want -= asked[i]
		if !o.exhausted {
			able++
		}
	}
	for i, o := range offers {
		if !o.exhausted {
			part := (want + able - 1) / able
			asked[i] += part
			want -= part
			able--
		}
	}
	return asked
}
