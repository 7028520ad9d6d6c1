package coordinator

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// trustAfter is how long a member must have been present before it gets slots, so that one
// that comes and goes gets none.
const trustAfter = 5 * time.Second

// peers are the members, including this one, with their times of arrival.
type peers struct {
	members []ownership.Member
	since   map[string]arrival
}

// arrival is the arrival of one process, which has a lease of its own.
type arrival struct {
	lease Lease
	at    time.Time
	// ended says that the store no longer knows the lease.
	ended bool
}

// review reads the members from the keys, and reports whether one has come.
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

// markEnded stops handoffs to the holder of a lease that has ended.
func (p *peers) markEnded(lease Lease) {
	for id, a := range p.since {
		if a.lease == lease {
			a.ended = true
			p.since[id] = a
		}
	}
}

func (p *peers) lease(id string) Lease { return p.since[id].lease }

// trusted are the members that share the slots: this one, and those that have been present for
// trustAfter. next is when another one will have been; zero if none is expected.
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

// others are the members that a draining one can hand its slots off to. They need not have
// been present for long: it has no better choice.
func (p *peers) others(self string) []ownership.Member {
	return slices.DeleteFunc(slices.Clone(p.members), func(m ownership.Member) bool {
		return m.ID == self || m.Draining || p.since[m.ID].ended
	})
}
