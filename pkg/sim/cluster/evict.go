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
}

// makeRoom evicts the longest idle instance whose node a function without any
// instance then fits on, as the scheduler does: one, and no other until an order
// found no room still. It tells whether room is being made.
func (w *world) makeRoom(f *function, known *idleness) bool {
	if f.evicted {
		f.evicted = false
		return true
	}
	if !known.gathered {
		w.gather(known)
	}
	for {
		i := nodepick.Evict(known.nodes, known.idle, f.class.Requests)
		if i < 0 {
			return false
		}
		chosen := known.take(i)
		if w.evict(chosen) {
			f.evicted = true
			return true
		}
	}
}

// gather lists the idle instances of all functions.
func (w *world) gather(known *idleness) {
	known.gathered = true
	there := make(map[int]bool)
	for _, f := range w.functions {
		if f == nil || f.queue == nil {
			continue
		}
		for _, candidate := range f.queue.LongestIdle(instant(w.now), w.evictPolicy(f)) {
			in := f.instances[candidate.CID]
			known.idle = append(known.idle, nodepick.Idle{
				Node: w.nodes.Node(in.node).Name, Requests: f.class.Requests, For: candidate.Idle,
			})
			known.whose = append(known.whose, in)
			if !there[in.node] {
				there[in.node] = true
				known.nodes = append(known.nodes, w.nodes.Node(in.node))
			}
		}
	}
}

// take returns an idle instance and forgets it.
func (k *idleness) take(i int) *instance {
	chosen := k.whose[i]
	k.whose = slices.Delete(k.whose, i, i+1)
	k.idle = slices.Delete(k.idle, i, i+1)
	return chosen
}
