package cluster

import (
	"slices"

	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// idleness is what one tick knows of idle instances.
type idleness struct {
	gathered bool
	idle     []nodepick.Idle
	whose    []*instance // of the same index in idle
	// nodes are those with idle instances: on others nobody can make room.
	nodes []nodepick.Node
	// used is what each namespace's instances request, in thousandths of a core;
	// nil until somebody asks.
	used map[string]int64
}

// makeRoom evicts the longest idle instance whose node an instance of a function then
// fits on, as the scheduler does: one, and no other until an order found no room
// still. A function that has instances takes from other namespaces only if its own
// has less than an equal share. It tells whether room is being made.
func (s *scheduler) makeRoom(f *function, known *idleness, hasSome bool) bool {
	if f.evicted {
		f.evicted = false
		return true
	}
	if !known.gathered {
		s.gather(known)
	}
	everybodys := !hasSome || s.underShare(f, known)
	for {
		idle, index := known.among(func(in *instance) bool {
			return in.function != f && (everybodys || in.function.class.Namespace == f.class.Namespace)
		})
		i := nodepick.Evict(known.nodes, idle, f.class.Requests)
		if i < 0 {
			return false
		}
		chosen := known.take(index[i])
		if s.evict(chosen) {
			f.evicted = true
			return true
		}
	}
}

// gather lists the idle instances of all functions.
func (s *scheduler) gather(known *idleness) {
	known.gathered = true
	there := make(map[int]bool)
	for _, f := range s.populated {
		for _, candidate := range f.queue.LongestIdle(instant(s.now), s.evictPolicy(f)) {
			in := f.instances[candidate.CID]
			known.idle = append(known.idle, nodepick.Idle{
				Node: s.nodes.Node(in.node).Name, Requests: f.class.Requests, For: candidate.Idle,
			})
			known.whose = append(known.whose, in)
			if !there[in.node] {
				there[in.node] = true
				known.nodes = append(known.nodes, s.nodes.Node(in.node))
			}
		}
	}
}

// among are the idle instances that are eligible, and which they are.
func (k *idleness) among(eligible func(*instance) bool) (idle []nodepick.Idle, index []int) {
	for i, in := range k.whose {
		if eligible(in) {
			idle, index = append(idle, k.idle[i]), append(index, i)
		}
	}
	return idle, index
}

// underShare tells whether a namespace would have no more than an equal share with
// one more instance.
func (s *scheduler) underShare(f *function, known *idleness) bool {
	if known.used == nil {
		known.used = make(map[string]int64)
		for _, g := range s.populated {
			known.used[g.class.Namespace] += max(1, g.class.Requests.MilliCPU) * int64(len(g.instances))
		}
	}
	total := int64(0)
	for _, used := range known.used {
		total += used
	}
	share := total / int64(max(1, len(known.used)))
	return known.used[f.class.Namespace]+max(1, f.class.Requests.MilliCPU) <= share
}

// take returns an idle instance and forgets it.
func (k *idleness) take(i int) *instance {
	chosen := k.whose[i]
	k.whose = slices.Delete(k.whose, i, i+1)
	k.idle = slices.Delete(k.idle, i, i+1)
	return chosen
}
