package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// evictGrace is how long an idle instance has to go once it was let go.
const evictGrace = 10 * time.Second

// crowd is what one tick knows of instances that could make room. It is taken from the
// roster when it is first asked for, once for all functions that lack room.
type crowd struct {
	gathered bool
	idle     []nodepick.Idle
	whose    []idler // of the same index in idle
	gone     []bool
	// clearings are by where the functions that ask may run.
	clearings map[string]*nodepick.Clearing
	// used and total are the roster's.
	used  map[string]int64
	total int64
	// lacked is room for first instances that could not be made.
	lacked map[placement]*roomWant
}

// lack notes that room for a first instance could not be made.
func (k *crowd) lack(of placement, uid string, waited time.Duration) {
	if k.lacked == nil {
		k.lacked = make(map[placement]*roomWant)
	}
	w := k.lacked[of]
	if w == nil {
		w = &roomWant{of: of}
		k.lacked[of] = w
	}
	if w.n++; waited > w.waited {
		w.uid, w.waited = uid, waited
	}
}

// lackedBy is all room that could not be made.
func (k *crowd) lackedBy() (wants []roomWant) {
	for _, w := range k.lacked {
		wants = append(wants, *w)
	}
	return wants
}

// spareGroup is the group of spare instances, which is no namespace's name.
const spareGroup = "*spare"

// makeRoom reserves room for instances of a function that found none, and lets idle
// instances of others go so that it comes free (FPCSch IV-C): spare ones as many as
// are needed, others for one instance at a time.
//
// A function without any instance takes from whom it may, as soon as an instance of
// another has become idle after its own call came. One that has some, and is only
// slower for want of more, takes what was idle for EvictAfter: of others of its
// namespace, and of other namespaces as long as its own has less than an equal share
// of what the functions of this scheduler use. Otherwise a namespace that calls much
// would push aside, instance by instance, what others keep for their next call.
func (s *Scheduler) makeRoom(c *considered, known *crowd) {
	f, want := c.function, s.deps.Instances.Requests(c.fn)
	for missing := c.missing(); len(f.reserved) < missing; {
		ask := nodepick.Ask{Want: want, Group: spareGroup, IdleFor: s.config.EvictAfter}
		if s.deps.Runtimes != nil && s.reserve(&f.holder, f.place(), c.fn, known, ask) {
			continue
		}
		if len(f.reserved) > 0 || !c.starved() && c.snapshot.Waiting() == 0 {
			return
		}
		ask.Group = ""
		switch {
		case c.starved():
			ask.Waited = c.snapshot.OldestWait
		case !known.underShare(c.fn, want):
			ask.Group = c.fn.Namespace
		}
		if !s.reserve(&f.holder, f.place(), c.fn, known, ask) {
			return
		}
	}
}

// reserve reserves room for one instance of a function, if what it asks for can be had
// now or once others have gone.
func (s *Scheduler) reserve(h *holder, where string, fn *v1alpha1.Function, known *crowd, ask nodepick.Ask) bool {
	for {
		node, out, ok := s.clearing(where, fn, known).Find(ask)
		if !ok {
			return false
		}
		for _, i := range out {
			chosen := known.whose[i]
			own := chosen.function != nil && chosen.function == h.of
			frees := !own && s.evict(chosen, known.idle[i], fn)
			known.gone[i] = true
			for _, clearing := range known.clearings {
				clearing.Gone(i, frees)
			}
			ok = ok && frees
		}
		if ok {
			s.rooms.hold(h, node, ask.Want)
			for _, clearing := range known.clearings {
				clearing.Reserve(node, ask.Want)
			}
			return true
		}
	}
}

// clearing is where the instances of a function may run, as it will be once all that
// was told to go has gone.
func (s *Scheduler) clearing(where string, fn *v1alpha1.Function, known *crowd) *nodepick.Clearing {
	c := known.clearings[where]
	if c == nil {
		nodes := s.site(where, fn).Nodes()
		for i := range nodes {
			nodes[i].Requested = nodes[i].Requested.Minus(s.rooms.freed[nodes[i].Name])
		}
		c = nodepick.NewClearing(nodes, known.idle)
		for i, gone := range known.gone {
			if gone {
				c.Gone(i, false) // it is among those that were told to go
			}
		}
		known.clearings[where] = c
	}
	return c
}

// underShare tells whether a namespace would have no more than an equal share with
// one more instance.
func (k *crowd) underShare(fn *v1alpha1.Function, want nodepick.Amount) bool {
	return k.used[fn.Namespace]+max(1, want.MilliCPU) <= k.total/int64(max(1, len(k.used)))
}

// evictPolicy is when an instance of a function may be made to leave for another
// function's.
func (s *Scheduler) evictPolicy(f *function) queue.EvictPolicy {
	return evictPolicy(f.current(), s.upkeepNow(f), s.config.EvictAfter)
}

// evict lets an instance go for a function's, unless it has been needed since it was
// looked at.
func (s *Scheduler) evict(chosen idler, idle nodepick.Idle, beneficiary *v1alpha1.Function) bool {
	reason := "made room for " + beneficiary.Key().String()
	if g := chosen.function; g == nil {
		s.removeSpares([]provisioner.Instance{{Key: chosen.key}})
		s.deps.Log.Info("removing a spare instance", "cid", chosen.key.CID, "node", idle.Node, "reason", reason)
	} else {
		policy := s.evictPolicy(g)
		policy.IdleFor = idle.For
		if !s.retire(g, chosen.key.CID, policy, reason) {
			return false
		}
		g.note(instanceEvicted, 1)
		s.deps.Log.Info("evicted an idle instance", "function", g.current().Key().String(), "cid", chosen.key.CID, "reason", reason, "idle", idle.For)
	}
	s.rooms.leave(chosen.key, idle.Node, idle.Requests, s.deps.Now())
	return true
}

// retire lets an idle instance go if the policy allows it still.
func (s *Scheduler) retire(f *function, cid invoke.CID, policy queue.EvictPolicy, reason string) bool {
	if !f.broker.Evict(cid, policy, reason) {
		return false
	}
	s.deps.Instances.Leaving(keyOf(f.uid, cid), evictGrace)
	return true
}
