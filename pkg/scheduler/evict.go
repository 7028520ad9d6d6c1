package scheduler

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
)

// evictGrace is how long an idle instance has to go once it was let go.
const evictGrace = 10 * time.Second

// idleness is what one tick knows of idle instances. It is gathered when it is
// first asked for, once for all functions that lack room.
type idleness struct {
	gathered bool
	idle     []nodepick.Idle
	whose    []idleInstance // of the same index in idle
}

type idleInstance struct {
	function *function
	cid      invoke.CID
}

// makeRoom evicts the longest idle instance whose node a function without any
// instance then fits on (FPCSch IV-C). It evicts no other until that one is gone
// and another order found no room still. It tells whether room is being made.
func (s *Scheduler) makeRoom(f *function, known *idleness) bool {
	if f.evicted != (provisioner.Key{}) {
		if !s.exists(f.evicted) {
			f.evicted = provisioner.Key{}
		}
		return true
	}
	if !known.gathered {
		s.gather(known)
	}
	beneficiary := f.current()
	nodes, _ := s.deps.Instances.Candidates(beneficiary)
	want := s.deps.Instances.Requests(beneficiary)
	for {
		i := nodepick.Evict(nodes, known.idle, want)
		if i < 0 {
			return false
		}
		chosen, idle := known.take(i)
		if s.evict(chosen, idle, "made room for "+beneficiary.Key().String()) {
			f.evicted = keyOf(chosen.function.uid, chosen.cid)
			return true
		}
	}
}

func (s *Scheduler) exists(key provisioner.Key) bool {
	return slices.ContainsFunc(s.deps.Instances.Instances(key.FunctionUID), func(in provisioner.Instance) bool {
		return in.CID == key.CID
	})
}

// gather lists the idle instances of all functions.
func (s *Scheduler) gather(known *idleness) {
	known.gathered = true
	for _, f := range s.all() {
		idle := f.broker.LongestIdle(evictPolicy(f.current(), s.config))
		if len(idle) == 0 {
			continue
		}
		instances := make(map[invoke.CID]provisioner.Instance)
		for _, in := range s.deps.Instances.Instances(f.uid) {
			instances[in.CID] = in
		}
		for _, candidate := range idle {
			if in, there := instances[candidate.CID]; there {
				known.idle = append(known.idle, nodepick.Idle{Node: in.Node, Requests: in.Requests, For: candidate.Idle})
				known.whose = append(known.whose, idleInstance{f, candidate.CID})
			}
		}
	}
}

// take returns an idle instance and forgets it.
func (k *idleness) take(i int) (idleInstance, time.Duration) {
	chosen, idle := k.whose[i], k.idle[i].For
	k.whose = slices.Delete(k.whose, i, i+1)
	k.idle = slices.Delete(k.idle, i, i+1)
	return chosen, idle
}

// evict retires an instance unless it is needed after all.
func (s *Scheduler) evict(chosen idleInstance, idle time.Duration, reason string) bool {
	g := chosen.function
	fn := g.current()
	if !g.broker.Evict(chosen.cid, evictPolicy(fn, s.config), reason) {
		return false
	}
	s.deps.Instances.Leaving(keyOf(g.uid, chosen.cid), evictGrace)
	s.record(g, (*metrics).evicted)
	s.deps.Log.Info("evicted an idle instance", "function", fn.Key().String(), "cid", chosen.cid, "reason", reason, "idle", idle)
	return true
}
