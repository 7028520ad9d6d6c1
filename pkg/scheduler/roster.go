package scheduler

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/scheduler/alarm"
)

// roster is what is known of all instances that could make room. It is kept from tick to
// tick: a tick looks only at functions of which something has changed since, or whose time
// has come.
type roster struct {
	of map[string]*standing
	// idle are those of all functions, in the order in which they go.
	idle []idler
	// moving are the functions with instances that come or go.
	moving map[string]*standing
	alarms alarm.Alarms[string]
	// used is what each namespace's instances request, in thousandths of a core, and
	// total the sum.
	used  map[string]int64
	total int64
}

// standing is what the instances of one function, or of one pool, come to.
type standing struct {
	namespace string
	// cost is what those request that work, in thousandths of a core.
	cost int64
	idle []idler
	// moving are the nodes on which an instance comes or goes.
	moving []string
	// until is when this may be otherwise though nothing has changed; zero for never.
	until time.Time

	alarm alarm.Alarm[string]
}

// idler is an instance that may go: an idle one of a function, or a spare one, which is
// of none.
type idler struct {
	key      provisioner.Key
	function *function
	node     string
	requests nodepick.Amount
	group    string
	since    time.Time
}

// order is in which order instances go: spare ones before all others, then the one that
// has been idle for longest, and of two equals the one of lower rank.
func (i idler) order(other idler) int {
	return cmp.Or(
		cmp.Compare(rankOf(i.function), rankOf(other.function)), i.since.Compare(other.since),
		cmp.Compare(other.key.CID, i.key.CID), cmp.Compare(i.key.FunctionUID, other.key.FunctionUID),
	)
}

func rankOf(f *function) int {
	if f == nil {
		return 0
	}
	return 1
}

// idleFor is for how long it has been idle. A spare one has been for longer than any of
// a function.
func (i idler) idleFor(now time.Time) time.Duration {
	if i.function == nil {
		return math.MaxInt64/2 + now.Sub(i.since)
	}
	return now.Sub(i.since)
}

func newRoster() *roster {
	return &roster{of: make(map[string]*standing), moving: make(map[string]*standing), used: make(map[string]int64)}
}

// due are the functions whose time has come.
func (r *roster) due(now time.Time) []string { return r.alarms.Due(now) }

// update replaces what is known of some functions; one that comes to nothing is
// forgotten. It returns the idle instances of these functions.
func (r *roster) update(anew map[string]*standing) (idle []idler) {
	had := false
	for uid, next := range anew {
		if old := r.of[uid]; old != nil {
			r.charge(old.namespace, -old.cost)
			r.alarms.Set(&old.alarm, time.Time{})
			had = had || len(old.idle) > 0
		}
		delete(r.of, uid)
		delete(r.moving, uid)
		if next.cost == 0 && len(next.idle)+len(next.moving) == 0 {
			continue
		}
		r.of[uid] = next
		r.charge(next.namespace, next.cost)
		if len(next.moving) > 0 {
			r.moving[uid] = next
		}
		if next.alarm.Of = uid; !next.until.IsZero() {
			r.alarms.Set(&next.alarm, next.until)
		}
		idle = append(idle, next.idle...)
	}
	if had {
		r.idle = slices.DeleteFunc(r.idle, func(i idler) bool { return anew[i.key.FunctionUID] != nil })
	}
	if len(idle) > 0 {
		slices.SortFunc(idle, idler.order)
		r.idle = merge(r.idle, idle)
	}
	return idle
}

// charge adds to what a namespace uses. One that uses nothing is none.
func (r *roster) charge(namespace string, cost int64) {
	if cost == 0 {
		return
	}
	r.total += cost
	if r.used[namespace] += cost; r.used[namespace] == 0 {
		delete(r.used, namespace)
	}
}

// merge adds idle instances to others, both in order.
func merge(all, more []idler) []idler {
	i, j := len(all)-1, len(more)-1
	all = append(all, more...)
	for at := len(all) - 1; j >= 0; at-- {
		if i >= 0 && all[i].order(more[j]) > 0 {
			all[at] = all[i]
			i--
		} else {
			all[at] = more[j]
			j--
		}
	}
	return all
}
