package nodeagent

import (
	"math"
	"time"

	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// classOf is the class of an instance whose agent says one. Batch only takes from the one who says
// it, so everybody is believed. LatencyCritical takes from others, so it counts only in namespaces
// that the node's administrator has named; the namespace is proven, and not the agent's word.
func classOf(said, namespace string, latencyCritical []string) callorder.Class {
	switch said {
	case callorder.Batch.String():
		return callorder.Batch
	case callorder.LatencyCritical.String():
		if wellknown.Allows(latencyCritical, namespace) {
			return callorder.LatencyCritical
		}
	}
	return callorder.Standard
}

// usageMeter measures on how many cores the instances of one class compute. Their usage is all
// that is known of them: they do not ask, so nobody says when a call of theirs begins.
type usageMeter struct {
	class callorder.Class
	since time.Duration
	at    map[callorder.InstanceID]time.Duration // usage then
	// cores is what observe returned last, took the time before since over which that was, and missing says that some
	// instance was seen for the first time.
	cores   float64
	took    time.Duration
	missing bool
}

func newUsageMeter(class callorder.Class) usageMeter {
	return usageMeter{class: class, at: map[callorder.InstanceID]time.Duration{}}
}

// figureFor is how long a figure of a usageMeter is used at most.
const figureFor = 50 * time.Millisecond

// recent is on how many cores the class computes now. A figure is used for twice the time over which it was taken, so that
// one moment does not count for many. One over more than longest is old, and says nothing of now.
func (u *usageMeter) recent(now, longest time.Duration, sessions map[callorder.InstanceID]*session, classes map[callorder.Class]int) (cores float64, known bool) {
	if now-u.since >= min(2*u.took, figureFor) || u.took > longest || u.missing {
		u.observe(now, sessions, classes)
	}
	return u.cores, u.took <= longest
}

// observe reads what the class has used since the last time, in cores. Instances that have come
// since then count from now on. classes is how many there are of each.
func (u *usageMeter) observe(now time.Duration, sessions map[callorder.InstanceID]*session, classes map[callorder.Class]int) (cores float64) {
	u.cores, u.took, u.missing = 0, now-u.since, false
	u.since = now
	if classes[u.class] == 0 {
		clear(u.at)
		u.took = 0
		return 0
	}
	var used time.Duration
	for id := range u.at {
		if sessions[id] == nil {
			delete(u.at, id)
		}
	}
	for id, s := range sessions {
		if !u.counts(s) {
			delete(u.at, id)
			continue
		}
		s.look(now)
		before, known := u.at[id]
		if known {
			used += s.usage - before
		}
		u.missing = u.missing || !known
		u.at[id] = s.usage
	}
	if u.took > 0 {
		u.cores = float64(used) / float64(u.took)
	}
	return u.cores
}

// counts says whether what the instance uses counts. A batch instance that is not in the low band competes with all
// others: what it gets was not left by them.
func (u *usageMeter) counts(s *session) bool {
	return s.class == u.class && (u.class != callorder.Batch || s.inLow && !s.bandless)
}

// occupiedCores is how many cores others get no tickets for, if latency-critical instances compute on
// so many. To the nearest: those who use a quarter of a core leave the rest of it to a call, and those
// who use most of one would share it with a call that has a ticket.
func occupiedCores(used float64) int { return int(math.Round(used)) }

// full reports whether what wants to run beside batch instances wants all cores. Batch instances
// only get what others leave, so if they get something, something was left, however many of their
// threads want to run. What they get by breaths says nothing, nor does a little, unless it is nearly all
// of the cores on which they may run.
func full(batchGot float64, breaths float64, cores, allowed int) bool {
	return batchGot < min(breaths*float64(cores)+0.5, 0.9*float64(allowed))
}
