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
	// MaxShortages bounds of how many shapes room is asked of peers.
	MaxShortages = 8
	// MaxInstances bounds for how many instances of each shape it is.
	MaxInstances = 256
	// PeerSilent is how long a peer may say nothing before nothing is hoped of it, or lent
	// to it.
	PeerSilent = 3 * ownership.HeartbeatInterval
	// exhaustedFor is how long a peer that has no more to give is not asked for more.
	exhaustedFor = 4 * ownership.HeartbeatInterval
)

// Shortage is room that is lacked for first instances of one shape, and not to be had here.
type Shortage struct {
	Shape
	// UID is the function that has waited longest for it.
	UID       string
	Instances int
	// Waited is for how long its oldest call has waited.
	Waited time.Duration
}

// Grant is what a peer has made of what it was asked for.
type Grant struct {
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
	self      string
	shortages []Shortage
	peers     map[string]*lender
}

// lender is a peer that may lend room.
type lender struct {
	heard   time.Time
	byShape map[Shape]*loanRequest
}

// loanRequest is what a peer was asked for, and what it has made.
type loanRequest struct {
	instances, granted int
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

// SetShortages replaces what is lacked. What has been waited for longest is asked for.
func (b *Borrower) SetShortages(shortages []Shortage) {
	slices.SortFunc(shortages, func(x, y Shortage) int {
		return cmp.Or(cmp.Compare(y.Waited, x.Waited), cmp.Compare(x.UID, y.UID))
	})
	b.shortages = shortages[:min(len(shortages), MaxShortages)]
	for _, p := range b.peers {
		maps.DeleteFunc(p.byShape, func(of Shape, _ *loanRequest) bool { return !b.isShort(of) })
	}
}

func (b *Borrower) isShort(of Shape) bool {
	return slices.ContainsFunc(b.shortages, func(l Shortage) bool { return l.Shape == of })
}

// RequestsTo is all that a peer is asked for now.
func (b *Borrower) RequestsTo(peer string, now time.Time) []Shortage {
	ids := b.alive(now)
	at := slices.Index(ids, peer)
	if at < 0 {
		return nil // it has said nothing yet
	}
	var all []Shortage
	for _, l := range b.shortages {
		offers := make([]offer, len(ids))
		for i, id := range ids {
			r := b.peers[id].request(l.Shape)
			offers[i] = offer{r.granted, now.Before(r.exhaustedUntil)}
		}
		r := b.peers[peer].request(l.Shape)
		r.instances = splitRequest(min(l.Instances, MaxInstances), offers)[at]
		switch {
		case r.instances <= r.granted:
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

// RecordGrants notes what a peer has made of what it was asked for. One that says nothing of a
// shape for PeerSilent does not know it, or has nothing.
func (b *Borrower) RecordGrants(peer string, granted map[Shape]Grant, now time.Time) {
	p := b.peers[peer]
	if p == nil {
		p = &lender{byShape: make(map[Shape]*loanRequest)}
		b.peers[peer] = p
	}
	p.heard = now
	for of, r := range p.byShape {
		m := granted[of]
		r.granted = min(m.Instances, r.instances)
		overdue := !r.since.IsZero() && now.Sub(r.since) >= PeerSilent
		if r.granted < r.instances && (m.Exhausted || overdue) {
			r.exhaustedUntil, r.tried, r.since = now.Add(exhaustedFor), true, time.Time{}
		}
	}
	maps.DeleteFunc(b.peers, func(_ string, p *lender) bool { return now.Sub(p.heard) > time.Minute })
}

// MayGrant tells whether a peer makes room of a shape, or may yet.
func (b *Borrower) MayGrant(of Shape, now time.Time) bool {
	if !b.isShort(of) {
		return false // too many others have waited longer
	}
	return slices.ContainsFunc(b.alive(now), func(id string) bool {
		r := b.peers[id].request(of)
		return r.granted > 0 || !r.tried
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

func (p *lender) request(of Shape) *loanRequest {
	r := p.byShape[of]
	if r == nil {
		r = &loanRequest{}
		p.byShape[of] = r
	}
	return r
}

// offer is what one peer has made, and whether it has no more.
type offer struct {
	granted   int
	exhausted bool
}

// splitRequest divides what is wanted: what a peer has made is asked of it, and the rest
// evenly of those that may have more. It is never more than is wanted in all.
func splitRequest(want int, offers []offer) []int {
	asked, able := make([]int, len(offers)), 0
	for i, o := range offers {
		asked[i] = min(o.granted, want)
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
