package scheduler

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// evictGrace is how long an idle instance has to go once it was let go.
const evictGrace = 10 * time.Second

// idleness is what one tick knows of idle instances. It is gathered when it is
// first asked for, once for all functions that lack room.
type idleness struct {
	gathered bool
	idle     []nodepick.Idle
	whose    []idleInstance // of the same index in idle
	// used is what each namespace's instances request, in thousandths of a core;
	// nil until somebody asks.
	used map[string]int64
}

type idleInstance struct {
	function *function
	cid      invoke.CID
}

// makeRoom evicts the longest idle instance whose node an instance of a function then
// fits on (FPCSch IV-C). It evicts no other until that one is gone and another order
// found no room still. It tells whether room is being made.
//
// A function without any instance takes from whom it may. One that has some, and is
// only slower for want of more, takes from others of its namespace; and from other
// namespaces as long as its own has less than an equal share of what the functions
// of this scheduler use. Otherwise a namespace that calls much would push aside,
// instance by instance, what others keep for their next call.
func (s *Scheduler) makeRoom(f *function, known *idleness, hasSome bool) bool {
	if f.evicted != nil {
		if !s.deps.Instances.Has(*f.evicted) {
			f.evicted = nil
		}
		return true
	}
	if !known.gathered {
		s.gather(known)
	}
	beneficiary := f.current()
	nodes, _ := s.deps.Instances.Candidates(beneficiary)
	want := s.deps.Instances.Requests(beneficiary)
	everybodys := !hasSome || s.underShare(beneficiary, known, want)
	for {
		idle, index := known.among(func(in idleInstance) bool {
			return in.function != f && (everybodys || in.function.current().Namespace == beneficiary.Namespace)
		})
		i := nodepick.Evict(nodes, idle, want)
		if i < 0 {
			return false
		}
		chosen, idleFor := known.take(index[i])
		if s.evict(chosen, idleFor, "made room for "+beneficiary.Key().String()) {
			f.evicted = &provisioner.Key{FunctionUID: chosen.function.uid, CID: chosen.cid}
			return true
		}
	}
}

// gather lists the idle instances of all functions.
func (s *Scheduler) gather(known *idleness) {
	known.gathered = true
	for _, f := range s.all() {
		if s.deps.Instances.Count(f.uid).Created == 0 {
			continue
		}
		idle := f.broker.LongestIdle(s.evictPolicy(f))
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

// among are the idle instances that are eligible, and which they are.
func (k *idleness) among(eligible func(idleInstance) bool) (idle []nodepick.Idle, index []int) {
	for i, in := range k.whose {
		if eligible(in) {
			idle, index = append(idle, k.idle[i]), append(index, i)
		}
	}
	return idle, index
}

// underShare tells whether a namespace would have no more than an equal share with
// one more instance.
func (s *Scheduler) underShare(fn *v1alpha1.Function, known *idleness, want nodepick.Amount) bool {
	if known.used == nil {
		known.used = make(map[string]int64)
		for _, f := range s.all() {
			if counts := s.deps.Instances.Count(f.uid); counts.Created+counts.Creating > 0 {
				g := f.current()
				cost := max(1, s.deps.Instances.Requests(g).MilliCPU)
				known.used[g.Namespace] += cost * int64(counts.Created+counts.Creating)
			}
		}
	}
	total := int64(0)
	for _, used := range known.used {
		total += used
	}
	return known.used[fn.Namespace]+max(1, want.MilliCPU) <= total/int64(max(1, len(known.used)))
}

// evictPolicy is when an instance of a function may be made to leave for another
// function's.
func (s *Scheduler) evictPolicy(f *function) queue.EvictPolicy {
	return evictPolicy(f.current(), s.upkeepNow(f), s.config.EvictAfter)
}

// evict retires an instance for another function's, unless it is needed after all.
func (s *Scheduler) evict(chosen idleInstance, idle time.Duration, reason string) bool {
	g := chosen.function
	if !s.retire(chosen, s.evictPolicy(g), reason) {
		return false
	}
	g.note(instanceEvicted, 1)
	s.deps.Log.Info("evicted an idle instance", "function", g.current().Key().String(), "cid", chosen.cid, "reason", reason, "idle", idle)
	return true
}

// retire lets an idle instance go if the policy allows it still.
func (s *Scheduler) retire(chosen idleInstance, policy queue.EvictPolicy, reason string) bool {
	if !chosen.function.broker.Evict(chosen.cid, policy, reason) {
		return false
	}
	s.deps.Instances.Leaving(keyOf(chosen.function.uid, chosen.cid), evictGrace)
	return true
}
