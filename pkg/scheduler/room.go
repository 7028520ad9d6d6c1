package scheduler

import (
	"encoding/json"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/spare"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// whereOf names the nodes on which a function's instances may run; it is empty for a
// function that may run on every ordinary node. Namespaces have no bound of their own:
// they share what is ordered, and a quota of theirs is known to the API server only.
func whereOf(fn *v1alpha1.Function) string {
	if len(fn.Spec.NodeSelector) == 0 && len(fn.Spec.Tolerations) == 0 {
		return ""
	}
	// What was read from JSON can be written.
	text, _ := json.Marshal([]any{fn.Spec.NodeSelector, fn.Spec.Tolerations})
	return string(text)
}

// place is the function's whereOf.
func (f *function) place() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.where
}

// shape is what the room for an instance of a function depends on. The planner knows the
// nodes of its Where from then on.
func (s *Scheduler) shape(where string, fn *v1alpha1.Function) capacity.Shape {
	if !s.planner.Knows(where) {
		s.planner.Observe(where, s.deps.Instances.Candidates(fn))
	}
	return capacity.Shape{Requests: s.deps.Instances.Requests(fn), Where: where}
}

// room is for how many more instances of a function there is room. A spare instance that
// the function can take has room already.
func (s *Scheduler) room(f *function, fn *v1alpha1.Function) int {
	return s.planner.Room(s.shape(f.place(), fn)) + s.spareRoom(f, fn)
}

// planRoom begins a tick of the planner: it learns what has gone since the last one.
func (s *Scheduler) planRoom(now time.Time) {
	for _, key := range s.planner.Leaving() {
		if !s.deps.Instances.Has(provisioner.Key(key)) {
			s.planner.Left(key)
		}
	}
	for _, uid := range s.planner.Reserving() {
		if f := s.lookup(uid); f == nil || !s.served(f) {
			s.planner.Keep(uid, 0)
		}
	}
	s.planner.BeginTick(now)
}

// lackRoom follows up on orders that could not all be placed. Room is made for them. If
// none can be, other schedulers are asked, and what waits for a first instance goes on
// waiting as long as room may come free: it is refused once nothing has moved for a while
// where the room would be, and no other scheduler makes any.
func (s *Scheduler) lackRoom(c *considered) {
	f, now := c.function, s.deps.Now()
	s.crowdSpares(now)
	w := c.want(s.shape(f.place(), c.fn))
	if reserved := s.planner.Reserved(f.uid); reserved > 0 && reserved >= w.Missing {
		return
	}
	s.gather(now)
	inVain := s.planner.MakeRoom(w, now, s.evictorFor(c.fn))
	if inVain && !s.peerRoom.hope(w.Shape, now) {
		s.step(f, core.GivenUp{Refusal: noCapacity(c.ordered.NoRoom, s.config.NoRoomPatience)})
	}
}

// crowdSpares keeps pools from growing while others lack room.
func (s *Scheduler) crowdSpares(now time.Time) {
	if s.deps.Runtimes != nil {
		s.spares.crowd(now.Add(crowdedFor))
	}
}

// lend makes room for functions of other schedulers that have calls, no instance and no
// room; after all that functions of this scheduler want.
func (s *Scheduler) lend() {
	now := s.deps.Now()
	asked := s.peerRoom.asked(now)
	made, loans := make(map[string]map[string]capacity.Made), make(map[capacity.Loan]int)
	shapes := make(map[string]capacity.Shape) // by function, of those that are known
	for _, a := range asked {
		if made[a.Peer] == nil {
			made[a.Peer] = make(map[string]capacity.Made)
		}
		made[a.Peer][a.UID] = capacity.Made{Exhausted: true}
		if f := s.lookup(a.UID); f != nil {
			a.Shape = s.shape(f.place(), f.current())
			shapes[a.UID] = a.Shape
			loan := capacity.Loan{Peer: a.Peer, Shape: a.Shape}
			loans[loan] = max(loans[loan], a.Instances)
		}
	}
	if s.planner.KeepLent(loans) {
		s.crowdSpares(now)
		s.gather(now)
	}
	for _, a := range asked {
		if of, known := shapes[a.UID]; known {
			evict := s.evictorFor(s.lookup(a.UID).current())
			made[a.Peer][a.UID] = s.planner.Lend(capacity.Loan{Peer: a.Peer, Shape: of}, a.Instances, a.Waited, now, evict)
		}
	}
	s.peerRoom.answer(made)
}

// evictorFor evicts instances for a function's.
func (s *Scheduler) evictorFor(fn *v1alpha1.Function) capacity.Evictor {
	return func(e capacity.Evict) bool { return s.evict(e, "made room for "+fn.Key().String()) }
}

// evict lets an instance go for a function's, unless it has been needed since it was
// looked at.
func (s *Scheduler) evict(e capacity.Evict, reason string) bool {
	if e.Spare {
		s.removeSpares([]provisioner.Instance{{Key: provisioner.Key(e.Key)}})
		s.deps.Log.Info("removing a spare instance", "cid", e.CID, "node", e.Node, "reason", reason)
		return true
	}
	f := s.lookup(e.FunctionUID)
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, let := core.AnswerOf[core.LetGo](s.stepLocked(f, core.Evicted{
		CID: e.CID, IdleFor: e.For, KindStart: s.kindStart(f), Reason: reason,
	}))
	if let {
		s.deps.Log.Info("evicted an idle instance", "function", f.fn.Key().String(), "cid", e.CID, "reason", reason, "idle", e.For)
	}
	return let
}

// gather lets the planner know of instances that may be evicted, once in a tick.
func (s *Scheduler) gather(now time.Time) {
	if !s.planner.Gathered() {
		s.handInUsage(now)
		s.planner.Gather(now)
	}
}

// handInUsage hands in the usage of all functions of which something may have changed.
func (s *Scheduler) handInUsage(now time.Time) {
	changed := s.planner.Due(now)
	for _, f := range s.doubts.take() {
		changed = append(changed, f.uid)
	}
	changed = s.deps.Instances.Moved(changed)
	usages := make(map[string]capacity.Usage, len(changed))
	var list []provisioner.Placed
	for _, uid := range changed {
		if _, known := usages[uid]; !known {
			list = s.deps.Instances.Placed(list[:0], uid)
			usages[uid] = s.usage(uid, list, now)
		}
	}
	s.planner.Update(usages)
}

// mistrust has all usage handed in anew when it is next needed: a change that nobody noted
// is made up for when every other level of what is believed is looked at.
func (s *Scheduler) mistrust() {
	s.doubts.take()
	s.deps.Instances.ForgetMoves()
	s.planner.Mistrust()
}

// usage is what the instances of one function, or of one pool, amount to.
func (s *Scheduler) usage(uid string, list []provisioner.Placed, now time.Time) (u capacity.Usage) {
	created := 0
	_, pool := spare.PoolOf(uid)
	for _, in := range list {
		if in.State != provisioner.Created {
			u.Moving = append(u.Moving, in.Node)
		}
		switch {
		case in.State == provisioner.Leaving:
		case pool:
			u.Idle = append(u.Idle, capacity.Idle{Key: capacity.Key(in.Key), Node: in.Node, Requests: in.Requests, Spare: true, Since: in.Ordered})
		default:
			created++
		}
	}
	if f := s.lookup(uid); f != nil && created > 0 {
		s.usageOf(&u, f, list, created, now)
	}
	return u
}

// usageOf adds what a function's instances amount to that work, or are to.
func (s *Scheduler) usageOf(u *capacity.Usage, f *function, list []provisioner.Placed, created int, now time.Time) {
	fn := f.current()
	u.Namespace = fn.Namespace
	u.MilliCPU = max(1, s.deps.Instances.Requests(fn).MilliCPU) * int64(created)
	idle, until := s.idleOf(f, now)
	u.Until = until
	if len(idle) == 0 {
		return
	}
	working := make(map[string]provisioner.Placed, len(list))
	for _, in := range list {
		if in.State == provisioner.Created {
			working[string(in.CID)] = in
		}
	}
	for _, i := range idle {
		if in, works := working[string(i.CID)]; works {
			u.Idle = append(u.Idle, capacity.Idle{
				Key: capacity.Key(in.Key), Node: in.Node, Requests: in.Requests, Namespace: fn.Namespace, Since: i.Since,
			})
		}
	}
}

// idleOf are the instances of a function that may be evicted, and until when that stands
// if nothing happens; zero for ever. Nobody is evicted while calls wait.
func (s *Scheduler) idleOf(f *function, now time.Time) (idle []queue.IdleInstance, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.core.Waiting() > 0 {
		return nil, until
	}
	kind := s.kindStart(f)
	kept := f.core.Upkeep(now, kind)
	until = kept.Change
	if kept.Planned && f.core.Means().Start == 0 {
		until = now // it goes by the starts of others, which are not followed
	}
	// One that has just become idle may go later.
	return f.core.LongestIdle(now, f.core.EvictPolicy(now, 0, kind)), until
}
