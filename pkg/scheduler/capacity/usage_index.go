package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/scheduler/timerqueue"
)

// Usage is what the instances of one function, or of one pool of spare ones, amount to.
type Usage struct {
	Namespace string
	// MilliCPU is what the function's instances request that work.
	MilliCPU int64
	// Idle are the instances that may be evicted, and Moving the nodes on which one starts or
	// leaves.
	Idle   []Idle
	Moving []string
	// Until is when this may be otherwise though nothing has changed; zero for never.
	Until time.Time
}

// Idle is an instance that may be evicted.
type Idle struct {
	Key
	Node     string
	Requests placement.Amount
	// Namespace is that of its function, which a Spare instance does not have.
	Namespace string
	Spare     bool
	// Since is since when it is idle.
	Since time.Time
}

// spareGroup is the group of spare instances, which is no namespace's name.
const spareGroup = "*spare"

func (i *Idle) group() string {
	if i.Spare {
		return spareGroup
	}
	return i.Namespace
}

// idleFor is for how long it has been idle. A spare one counts as idle for longer than any of
// a function.
func (i *Idle) idleFor(now time.Time) time.Duration {
	if i.Spare {
		return math.MaxInt64/2 + now.Sub(i.Since)
	}
	return now.Sub(i.Since)
}

// evictedBefore orders instances for eviction: spare ones first, then the longest idle one,
// and of two equals the one of lower rank.
func evictedBefore(i, j *Idle) int {
	if i.Spare != j.Spare {
		if i.Spare {
			return -1
		}
		return 1
	}
	return cmp.Or(
		i.Since.Compare(j.Since), cmp.Compare(j.CID, i.CID), cmp.Compare(i.FunctionUID, j.FunctionUID),
	)
}

// usageIndex has the usage of the instances of all functions. It is kept from tick to tick, so
// that a tick looks only at functions that have changed, or whose time has come.
type usageIndex struct {
	of map[string]*indexedUsage
	// idle are the idle instances of all functions in the order of eviction.
	idle []*Idle
	// moving are the nodes on which instances of a function start or leave.
	moving map[string][]string
	// used is what each namespace's instances request, and total the sum.
	used   map[string]int64
	total  int64
	timers timerqueue.Queue[string]
}

// indexedUsage is the usage of one function.
type indexedUsage struct {
	Usage
	timer timerqueue.Timer[string]
}

// newUsageIndex makes an empty index.
func newUsageIndex() *usageIndex {
	return &usageIndex{of: make(map[string]*indexedUsage), moving: make(map[string][]string), used: make(map[string]int64)}
}

// update replaces the usage of some functions; one without instances is removed. It returns
// the idle instances of these functions.
func (r *usageIndex) update(usages map[string]Usage) (idle []*Idle) {
	had := false
	for uid, next := range usages {
		if r.removeUsage(uid) {
			had = true
		}
		if next.MilliCPU == 0 && len(next.Idle)+len(next.Moving) == 0 {
			continue
		}
		one := &indexedUsage{Usage: next, timer: timerqueue.Timer[string]{Owner: uid}}
		r.of[uid] = one
		r.addUsage(next.Namespace, next.MilliCPU)
		if len(next.Moving) > 0 {
			r.moving[uid] = next.Moving
		}
		if !next.Until.IsZero() {
			r.timers.Set(&one.timer, next.Until)
		}
		for i := range next.Idle {
			idle = append(idle, &next.Idle[i])
		}
	}
	if had {
		r.idle = slices.DeleteFunc(r.idle, func(i *Idle) bool {
			_, replaced := usages[i.FunctionUID]
			return replaced
		})
	}
	if len(idle) > 0 {
		slices.SortFunc(idle, evictedBefore)
		r.idle = mergeIdle(r.idle, idle)
	}
	return idle
}

// removeUsage removes a function except for its idle instances, and reports whether it has
// any.
func (r *usageIndex) removeUsage(uid string) (idle bool) {
	old := r.of[uid]
	if old == nil {
		return false
	}
	r.addUsage(old.Namespace, -old.MilliCPU)
	r.timers.Set(&old.timer, time.Time{})
	delete(r.of, uid)
	delete(r.moving, uid)
	return len(old.Idle) > 0
}

// addUsage adds to the usage of a namespace. A namespace that uses nothing is removed.
func (r *usageIndex) addUsage(namespace string, milliCPU int64) {
	if milliCPU == 0 {
		return
	}
	r.total += milliCPU
	if r.used[namespace] += milliCPU; r.used[namespace] == 0 {
		delete(r.used, namespace)
	}
}

// mergeIdle merges two sorted lists of idle instances.
func mergeIdle(all, more []*Idle) []*Idle {
	i, j := len(all)-1, len(more)-1
	all = append(all, more...)
	for at := len(all) - 1; j >= 0; at-- {
		if i >= 0 && evictedBefore(all[i], more[j]) > 0 {
			all[at] = all[i]
			i--
		} else {
			all[at] = more[j]
			j--
		}
	}
	return all
}

// lines writes all usage in an order that does not depend on its history.
func (r *usageIndex) lines() (lines []string) {
	for _, i := range r.idle {
		lines = append(lines, fmt.Sprint("idle: ", *i))
	}
	for _, namespace := range slices.Sorted(maps.Keys(r.used)) {
		lines = append(lines, fmt.Sprint("used by ", namespace, ": ", r.used[namespace]))
	}
	for _, uid := range slices.Sorted(maps.Keys(r.moving)) {
		lines = append(lines, fmt.Sprint("moving of ", uid, ": ", slices.Sorted(slices.Values(r.moving[uid]))))
	}
	return append(lines, fmt.Sprint("used in all: ", r.total))
}
