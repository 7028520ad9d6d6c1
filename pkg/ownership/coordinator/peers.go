package coordinator

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// trustAfter is how long a member must have been there before it is given
// anything: one that comes and goes gets nothing.
const trustAfter = 5 * time.Second

// peers are the members, this one among them, and since when they are there.
type peers struct {
	members []ownership.Member
	since   map[string]arrival
}

// arrival is that of one process: it has a lease of its own.
type arrival struct {
	lease Lease
	at    time.Time
	// ended says that the store does not know the lease any more.
	ended bool
}

// review takes the members from the keys, and tells whether one has come.
func (p *peers) review(now time.Time, view *View) (more bool) {
	p.members = view.Members()
	since := make(map[string]arrival, len(p.members))
	for _, m := range p.members {
		lease := view.members[m.ID].Lease
		if a := p.since[m.ID]; a.lease == lease {
			since[m.ID] = a
		} else {
			since[m.ID] = arrival{lease: lease, at: now}
			more = true
		}
	}
	p.since = since
	return more
}

// markEnded gives nothing more to whoever had the lease.
func (p *peers) markEnded(lease Lease) {
	for id, a := range p.since {
		if a.lease == lease {
			a.ended = true
			p.since[id] = a
		}
	}
}

func (p *peers) lease(id string) Lease { return p.since[id].lease }

// trusted are the members among whom the slots are to be shared: self, and those
// that have been there for some time. Next is when one more will have; zero if
// none is waited for.
func (p *peers) trusted(now time.Time, self string) (members []ownership.Member, next time.Time) {
	for _, m := range p.members {
		a := p.since[m.ID]
		ready := a.at.Add(trustAfter)
		switch {
		case m.ID == self:
			members = append(members, m)
		case m.Draining || a.ended:
		case !now.Before(ready):
			members = append(members, m)
		case next.IsZero() || ready.Before(next):
			next = ready
		}
	}
	return members, next
}

// others are the members that a draining one can give its slots to. They need
// not have been there for long: it has no better choice.
func (p *peers) others(self string) []ownership.Member {
	return slices.DeleteFunc(slices.Clone(p.members), func(m ownership.Member) bool {
		return m.ID == self || m.Draining || p.since[m.ID].ended
	})
}
