package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/fpcs"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// tick looks at every function that is not idle.
func (s *Scheduler) tick() {
	begun := s.deps.Now()
	s.noteTurn(begun)
	s.planRoom(begun)
	for _, f := range s.alarms.Due(begun) {
		s.activate(f)
	}
	active := s.actives()
	if s.stood.holds(begun) {
		overlook(active)
		return
	}
	// 1. to 5. Decide for each function.
	all := make([]*considered, 0, len(active))
	for _, f := range active {
		if c := s.consider(f); c != nil {
			all = append(all, c)
		}
	}
	// 6. Order, in turns of the namespaces.
	s.divide(all)
	// 7. and 8. See what became of the orders.
	for _, c := range inTurns(all) {
		s.conclude(c, true)
	}
	s.peerRoom.lack(s.planner.Lacks())
	s.lend()
	// 9. Bring warm pools to their size, with what is left.
	s.keepSpares()
	s.metrics.ticked(s.deps.Now().Sub(begun))
}

// actives are the functions that are not idle.
func (s *Scheduler) actives() []*function {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := make([]*function, 0, len(s.active))
	for f := range s.active {
		active = append(active, f)
	}
	return active
}

// consider decides for one function, or returns nil if there is nothing to decide.
func (s *Scheduler) consider(f *function) *considered {
	// 1. Only the owner decides, and only for what exists.
	if s.lookup(f.uid) != f {
		return nil
	}
	f.news.Store(false) // before looking: what happens from now on is for the next tick
	term, served := s.serves(f)
	if !served {
		s.alarms.Set(&f.alarm, time.Time{})
		s.refuseAll(f, f.broker.Clear(), notOwner) // which came as the slot went
		s.idle(f)
		return nil
	}
	f.broker.Expire()
	// 2. The instances first, 3. the queue second: a ticket that is pulled
	// in between is seen neither in the queue nor as a busy instance, so
	// that the race creates too little, which the next tick mends, and not
	// too much.
	counts := s.deps.Instances.Count(f.uid)
	view, stale := f.broker.ViewAndStale(staleAfter)
	awaits, unheard := s.awaitsHello(f, &counts)
	if awaits {
		return nil
	}
	// 4. Snapshot.
	c := &considered{function: f, fn: f.current(), term: term, counts: counts}
	c.snapshot = s.snapshot(f, c.fn, counts, view, stale)
	c.upkeep = f.keep(s.deps.Now(), max(s.config.Tick, c.snapshot.MeanStart))
	// 5. Decide.
	c.bounds = s.cautious(f, beside(unheard, limits(c.fn, c.upkeep)), counts)
	c.decision = fpcs.Bound(s.decider(c.fn)(c.snapshot, s.params()), c.snapshot, c.bounds)
	f.remember(c.decision, c.snapshot, s.deps.Now())
	return c
}

// conclude follows up on a decision. Room is made only by ticks.
func (s *Scheduler) conclude(c *considered, ticking bool) {
	f, ordered := c.function, c.ordered
	if c.asked {
		f.noRoom.Store(&ordered.NoRoom)
	}
	if c.wanted() > 0 {
		s.report(c)
	}
	s.withdrawSurplus(c)
	f.blocked.Store(c.wanted() > 0 && len(ordered.Keys) == 0)
	f.foresee(c)
	// 7. Make room, or refuse what cannot be served.
	s.planner.Keep(f.uid, c.missing())
	if ordered.NoRoom != "" && ticking {
		s.lackRoom(c)
	}
	s.chronicle.keep(s, c)
	// 8. Rest.
	s.releaseIdle(c)
	if c.wanted() == 0 && c.snapshot.Waiting() == 0 && c.counts.Creating == 0 && !c.tooMany() {
		s.rest(c)
	}
}

func noCapacity(why string, retryAfter time.Duration) invoke.Refusal {
	return invoke.Refusal{
		Reason:     invoke.RefusedNoCapacity,
		Detail:     "no node has room for an instance: " + why,
		RetryAfter: retryAfter,
	}
}

// count keeps the totals.
func (f *function) count(ordered int, s fpcs.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tally[instanceOrdered] += uint64(ordered)
	f.peak = max(f.peak, s.Created+s.Creating+ordered)
}

// loseNone forgets lost instances.
func (f *function) loseNone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = 0
}

// rest lets ticks pass over a function until something happens, or its upkeep
// changes.
func (s *Scheduler) rest(c *considered) {
	s.alarms.Set(&c.function.alarm, c.upkeep.Change)
	s.idle(c.function)
}

// idle lets ticks pass over a function until something happens, unless something has
// since the tick began to look at it.
func (s *Scheduler) idle(f *function) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.news.Load() {
		delete(s.active, f)
	}
}

// Totals are what was ordered for a function since the scheduler started.
type Totals struct {
	// Ordered instances in all, and the most that existed or were under way
	// at a time.
	Ordered, Peak int
}

// Totals returns a function's totals.
func (s *Scheduler) Totals(uid string) Totals {
	f := s.lookup(uid)
	if f == nil {
		return Totals{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return Totals{Ordered: int(f.tally[instanceOrdered]), Peak: f.peak}
}
