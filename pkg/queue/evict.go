package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// EvictPolicy says which instances may be evicted to make room for others.
type EvictPolicy struct {
	// Min is how many instances always stay.
	Min int
	// IdleFor is how long an instance must have been idle, more than 0.
	IdleFor time.Duration
}

// IdleInstance is an instance that may be evicted.
type IdleInstance struct {
	CID invocation.CID
	// Idle is how long it has run nothing, and Since when that began.
	Idle  time.Duration
	Since time.Time
}

// LongestIdle returns the instances that may be evicted, the longest idle one first, and of
// two equals the one of lower rank. Each of them may be evicted, but not all: every eviction
// changes the answer.
func (q *Queue) LongestIdle(now time.Time, policy EvictPolicy) []IdleInstance {
	if q.instances.totals.staying(nil) <= policy.Min {
		return nil
	}
	var idle []IdleInstance
	for cid, in := range q.instances.joined {
		if in.idleFor(now, policy.IdleFor) {
			idle = append(idle, IdleInstance{CID: cid, Idle: now.Sub(in.idleSince), Since: in.idleSince})
		}
	}
	slices.SortFunc(idle, func(a, b IdleInstance) int {
		return cmp.Or(cmp.Compare(b.Idle, a.Idle), cmp.Compare(b.CID, a.CID))
	})
	return idle
}

// Evict drains an instance if it may be evicted now, and reports whether it did.
// Because check and drain are one step, no ticket comes in between.
func (q *Queue) Evict(cid invocation.CID, now time.Time, policy EvictPolicy) bool {
	in, known := q.instances.joined[cid]
	return known && in.idleFor(now, policy.IdleFor) && q.instances.totals.staying(in) >= policy.Min && q.instances.drain(in)
}

func (in *instance) idleFor(now time.Time, least time.Duration) bool {
	return !in.idleSince.IsZero() && now.Sub(in.idleSince) >= least
}
