package capacity

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// MaxLacks bounds of how many shapes room is asked of peers.
	MaxLacks = 8
	// MaxInstances bounds for how many instances of each shape it is.
	MaxInstances = 256
	// PeerSilent is how long a peer may say nothing before nothing is hoped of it, or lent
	// to it.
	PeerSilent = 3 * ownership.BeatEvery
	// exhaustedFor is how long a peer that has no more to give is not asked for more.
	exhaustedFor = 4 * ownership.BeatEvery
)

// Lack is room that is lacked for first instances of one shape, and not to be had here.
type Lack struct {
	Shape
	// UID is the function that has waited longest for it.
	UID       string
	Instances int
	// Waited is for how long its oldest call has waited.
	Waited time.Duration
}

// Made is what a peer has made of what it was asked for.
type Made struct {
	Instances int
	// Exhausted says that it can make no more.
	Exhausted bool
}

// Borrower asks peers, which are the other schedulers, for room. It asks each room of one
// of them only, so that no more idle instances are evicted than are needed: what one has
// made is left to it, and what it cannot make is asked of the next. Two may make the same
// room only while what one was asked for and did not make is asked of another, and its
// late answer is on the way.
type Borrower struct {
	self  string
	lacks []Lack
	peers map[string]*lender
}

// lender is a peer that may lend room.
type lender struct {
	heard time.Time
	of    map[Shape]*asked
}

// asked is what a peer was asked for, and what it has made.
type asked struct {
	instances, made int
	// since is since when it has been asked for more than it has made; zero if it
	// is not.
	since time.Time
	// exhaustedUntil is until when no more is asked of it, and tried says that it
	// once could not make what it was asked for.
	exhaustedUntil time.Time
	tried          bool
}

// NewBorrower makes the Borrower of the scheduler of that ID.
func NewBorrower(self string) Borrower {
	return Borrower{self: self, peers: make(map[string]*lender)}
}

// Lack replaces what is lacked. What has been waited for longest is asked for.
func (b *Borrower) Lack(lacks []Lack) {
	slices.SortFunc(lacks, func(x, y Lack) int {
		return cmp.Or(cmp.Compare(y.Waited, x.Waited), cmp.Compare(x.UID, y.UID))
	})
	b.lacks = lacks[:min(len(lacks), MaxLacks)]
	for _, p := range b.peers {
		maps.DeleteFunc(p.of, func(of Shape, _ *asked) bool { return !b.asksFor(of) })
	}
}

func (b *Borrower) asksFor(of Shape) bool {
	return slices.ContainsFunc(b.lacks, func(l Lack) bool { return l.Shape == of })
}

// Ask is all that a peer is asked for now.
func (b *Borrower) Ask(peer string, now time.Time) []Lack {
	ids := b.alive(now)
	at := slices.Index(ids, peer)
	if at < 0 {
		return nil // it has said nothing yet
	}
	var all []Lack
	for _, l := range b.lacks {
		offers := make([]offer, len(ids))
		for i, id := range ids {
			r := b.peers[id].room(l.Shape)
			offers[i] = offer{r.made, now.Before(r.exhaustedUntil)}
		}
		r := b.peers[peer].room(l.Shape)
		r.instances = divide(min(l.Instances, MaxInstances), offers)[at]
		switch {
		case r.instances <= r.made:
			r.since = time.Time{}
		case r.since.IsZero():
			r.since = now
		}
		if l.Instances = r.instances; l.Instances > 0 {
			all = append(all, l)
		}
	}
	return all
}

// Answered notes what a peer has made of what it was asked for. One that says nothing of a
// shape for PeerSilent does not know it, or has nothing.
func (b *Borrower) Answered(peer string, made map[Shape]Made, now time.Time) {
	p := b.peers[peer]
	if p == nil {
		p = &lender{of: make(map[Shape]*asked)}
		b.peers[peer] = p
	}
	p.heard = now
	for of, r := range p.of {
		m := made[of]
		r.made = min(m.Instances, r.instances)
		overdue := !r.since.IsZero() && now.Sub(r.since) >= PeerSilent
		if r.made < r.instances && (m.Exhausted || overdue) {
			r.exhaustedUntil, r.tried, r.since = now.Add(exhaustedFor), true, time.Time{}
		}
	}
	maps.DeleteFunc(b.peers, func(_ string, p *lender) bool { return now.Sub(p.heard) > time.Minute })
}

// Hope tells whether a peer makes room of a shape, or may yet.
func (b *Borrower) Hope(of Shape, now time.Time) bool {
	if !b.asksFor(of) {
		return false // too many others have waited longer
	}
	return slices.ContainsFunc(b.alive(now), func(id string) bool {
		r := b.peers[id].room(of)
		return r.made > 0 || !r.tried
	})
}

// alive are the peers that answer, in an order that is this scheduler's own, so that not
// all schedulers ask the same one first.
func (b *Borrower) alive(now time.Time) []string {
	var ids []string
	for id, p := range b.peers {
		if now.Sub(p.heard) < PeerSilent {
			ids = append(ids, id)
		}
	}
	turn := func(id string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(b.self + "\x00" + id))
		return h.Sum64()
	}
	slices.SortFunc(ids, func(x, y string) int { return cmp.Or(cmp.Compare(turn(x), turn(y)), cmp.Compare(x, y)) })
	return ids
}

func (p *lender) room(of Shape) *asked {
	r := p.of[of]
	if r == nil {
		r = &asked{}
		p.of[of] = r
	}
	return r
}

// offer is what one peer has made, and whether it has no more.
type offer struct {
	made      int
	exhausted bool
}

// divide divides what is wanted: what a peer has made is asked of it, and the rest
// evenly of those that may have more. It is never more than is wanted in all.
func divide(want int, offers []offer) []int {
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
