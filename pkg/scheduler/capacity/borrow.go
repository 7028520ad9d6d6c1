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
	// MaxShortages is the maximum number of shapes for which room is requested from peers.
	MaxShortages = 8
	// MaxInstances is the maximum number of instances of each shape.
	MaxInstances = 256
	// PeerSilent is how long a peer may say nothing before nothing is expected from it, or
	// lent to it.
	PeerSilent = 3 * ownership.HeartbeatInterval
	// exhaustedFor is how long no more is requested from a peer that has no more to give.
	exhaustedFor = 4 * ownership.HeartbeatInterval
)

// Shortage is the room for first instances of one shape that this scheduler cannot make.
type Shortage struct {
	Shape
	// UID is the function that has waited longest for it.
	UID       string
	Instances int
	// Waited is for how long its oldest call has waited.
	Waited time.Duration
}

// Grant is the room that a peer has made for a request.
type Grant struct {
	Instances int
	// Exhausted says that it can make no more.
	Exhausted bool
}

// Borrower requests room from its peers, the other schedulers. It requests the same room
// from one of them only, so that no more idle instances are evicted than are needed: a
// grant stays with the peer that made it, and what a peer cannot make is requested from the
// next. Two peers may make the same room only if the grant of the first arrives late, after
// the request went to another.
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

// loanRequest is a request to a peer, and its grants.
type loanRequest struct {
	instances, granted int
	// since is since when more is requested than granted; zero if it is not.
	since time.Time
	// exhaustedUntil is until when no more is requested, and tried says that the peer once
	// could not grant all.
	exhaustedUntil time.Time
	tried          bool
}

// NewBorrower makes the Borrower of the scheduler of that ID.
func NewBorrower(self string) Borrower {
	return Borrower{self: self, peers: make(map[string]*lender)}
}

// SetShortages replaces the shortages. Those with the longest waits are requested.
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

// RequestsTo is all that is requested from a peer now.
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

// RecordGrants records a peer's grants. A peer that grants nothing of a shape for PeerSilent
// does not know the shape, or has no room.
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

// MayGrant reports whether some peer has granted room of a shape, or still may.
func (b *Borrower) MayGrant(of Shape, now time.Time) bool {
	if !b.isShort(of) {
		return false // too many others have waited longer
	}
	return slices.ContainsFunc(b.alive(now), func(id string) bool {
		r := b.peers[id].request(of)
		return r.granted > 0 || !r.tried
	})
}

// alive are the peers that answer, in an order that differs between schedulers, so that not
// all ask the same peer first.
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

// splitRequest splits a request among peers: each keeps what it has granted, and the rest
// goes evenly to those that are not exhausted. The parts never exceed the whole.
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
