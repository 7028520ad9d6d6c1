package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// ticker decides, tick by tick, how many instances there should be, and has them launched.
// Only Run's goroutine uses it.
type ticker struct {
	*host
	*warmPools
	peerRoom  *peerRoom
	chronicle *chronicle
	stood     core.PauseDetector
	// ticked and concluded are memory for the events of each function.
	ticked    core.Ticked
	concluded core.Applied
	// renewAt is when the next instance may be replaced for the age of its agent.
	renewAt time.Time
}

// tick looks at every function that is not idle. The numbers are those of
// docs/architecture.md, "A tick".
func (s *ticker) tick() {
	begun := s.deps.Now()
	// 1. Learn what has gone from the nodes, and wake functions whose time has come.
	s.placer.begin(begun)
	for _, f := range s.alarms.due(begun) {
		s.step(f, core.Woken{})
	}
	active := s.functions.actives()
	// 2. Order nothing after a standstill: what is seen then is old.
	if s.noteTurn(begun); s.stood.Holding(begun) {
		s.overlook(active)
		return
	}
	// 3. Observe and decide, function by function.
	all := make([]*considered, 0, len(active))
	for _, f := range active {
		if c := s.consider(f); c != nil {
			all = append(all, c)
		}
	}
	// 4. Launch instances, in turns of the namespaces.
	s.divide(all)
	// 5. Withdraw what is not wanted, make room where some is lacking, and let each
	// function draw its conclusions.
	for _, c := range inTurns(all) {
		s.conclude(c, true)
	}
	// 6. Ask other schedulers for room that could not be made, and make what they ask for.
	s.peerRoom.lack(s.placer.planner.Shortages())
	s.placer.lend(begun)
	// 7. Bring warm pools to their size, with what is left.
	s.keepSpares()
	s.metrics.ticked(s.deps.Now().Sub(begun))
}

// consider decides for one function, or returns nil if there is nothing to decide.
func (s *ticker) consider(f *function) *considered {
	if s.lookup(f.uid) != f {
		return nil // it was deleted
	}
	s.serves(f) // what was taken over just now is observed, too
	u := f.now()
	observed := s.observe(f, u)
	term := s.term(f.slot)
	f.mu.Lock()
	defer f.mu.Unlock()
	term, _ = s.serveLocked(f, term)
	now := s.deps.Now()
	s.ticked.Observed = observed
	d, is := core.AnswerOf[*core.Decided](s.stepAt(f, now, &s.ticked))
	if !is {
		return nil
	}
	f.book.terms = f.book.terms.after(d.Decision, d.Snapshot, now)
	return &considered{Decided: d, unit: u, function: f, term: term}
}

// conclude follows up on a decision. Room is made only by ticks.
func (s *ticker) conclude(c *considered, ticking bool) {
	f, ordered := c.function, c.ordered
	s.report(c)
	s.withdrawSurplus(c)
	s.placer.planner.Trim(f.uid, c.missing())
	if ordered.NoRoom != "" && ticking {
		s.placer.lackRoom(c)
	}
	s.chronicle.keep(s, c)
	now := s.deps.Now()
	s.concluded = core.Applied{
		Decided: c.Decided, Launched: len(ordered.Keys), Cancelled: len(c.withdrawn), NoRoom: ordered.NoRoom != "",
		ReplaceAgent: !now.Before(s.renewAt),
	}
	if _, renewed := ask[core.AgentReplaced](s.host, f, &s.concluded); renewed {
		s.renewAt = now.Add(core.ReplaceAgentEvery)
	}
}

func noCapacity(why string, retryAfter time.Duration) invocation.Refusal {
	return invocation.Refusal{
		Reason:     invocation.RefusedNoCapacity,
		Detail:     "no node has room for an instance: " + why,
		RetryAfter: retryAfter,
	}
}

// Totals are what was ordered for a function since the scheduler started.
type Totals struct {
	// Ordered instances in all, and the most that existed or were under way
	// at a time.
	Ordered, Peak int
}

// Totals returns the totals of a function, or of a unit alone: those of all its units that
// exist, added up.
func (s *accounts) Totals(uid string) (t Totals) {
	for _, f := range s.functions.unitsOf(uid) {
		f.mu.Lock()
		t.Ordered += int(f.book.tally[instanceOrdered])
		t.Peak += f.book.peak
		f.mu.Unlock()
	}
	return t
}
