package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// ticker decides in every tick how many instances each function has, and launches them. Only
// Run's goroutine uses it.
type ticker struct {
	shell     *shell
	placer    *placer
	budget    *capacity.Budget
	pools     *warmPools
	peerRoom  *peerRoom
	decisions *decisionLog
	pauses    core.PauseDetector
	// ticked and applied are reused for the events of each function.
	ticked  core.Ticked
	applied core.Applied
	// renewAt is when the next instance with an outdated agent may be replaced.
	renewAt time.Time
}

// tick looks at every function that is not parked. The numbers are those of
// docs/architecture.md, "A tick".
func (s *ticker) tick() {
	begun := s.shell.deps.Now()
	// 1. Read which instances have ended, and wake functions whose timers have expired.
	s.placer.beginTick(begun)
	for _, f := range s.shell.timers.due(begun) {
		s.shell.step(f, core.Woken{})
	}
	active := s.shell.units.listActive()
	// 2. Launch nothing after a pause of the process: what it observes then is old.
	if s.noteRun(begun); s.pauses.Holding(begun) {
		s.discardLosses(active)
		return
	}
	// 3. Observe and decide, function by function.
	all := make([]*evaluation, 0, len(active))
	for _, f := range active {
		if c := s.evaluate(f); c != nil {
			all = append(all, c)
		}
	}
	// 4. Launch instances, in turns of the namespaces.
	s.allocate(all)
	// 5. Cancel launches that are no longer wanted, make room where some is lacking, and let
	// each function apply its decision.
	for _, c := range roundRobin(all) {
		s.apply(c, true)
	}
	// 6. Ask other schedulers for room that could not be made, and make room for their
	// requests.
	s.peerRoom.setShortages(s.placer.planner.Shortages())
	s.placer.lend(begun)
	// 7. Bring warm pools to their size with the remaining rate and room.
	s.pools.maintainPools()
	s.shell.metrics.observeTick(s.shell.deps.Now().Sub(begun))
}

// runNow decides on a function before the next tick, unless that is no longer needed.
func (s *ticker) runNow(f *unit) {
	now := s.shell.deps.Now()
	s.noteRun(now)
	left := s.budget.LeftNow(now)
	if left == 0 || !s.needsRun(f) || s.pauses.Holding(now) {
		return
	}
	if c := s.evaluate(f); c != nil {
		s.launch(c, min(left, c.Wanted()))
		s.apply(c, false)
	}
}

// needsRun reports whether a waiting call requires a decision before the next tick.
func (s *ticker) needsRun(f *unit) bool {
	there := s.shell.hasInstance(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.NeedsRun(s.shell.deps.Now(), there)
}

// evaluate decides for one function. It returns nil if nothing can be decided.
func (s *ticker) evaluate(f *unit) *evaluation {
	if s.shell.lookup(f.uid) != f {
		return nil // it was deleted
	}
	s.shell.syncOwnership(f) // what was taken over just now is observed, too
	u := f.spec()
	observed := s.observe(f, u)
	term := s.shell.slots.term(f.slot)
	f.mu.Lock()
	defer f.mu.Unlock()
	term, _ = s.shell.syncOwnershipLocked(f, term)
	now := s.shell.deps.Now()
	s.ticked.Observed = observed
	d, is := core.AnswerOf[*core.Decided](s.shell.stepAt(f, now, &s.ticked))
	if !is {
		return nil
	}
	f.stats.plan = f.stats.plan.after(d.Decision, d.Snapshot, now)
	return &evaluation{Decided: d, unitSpec: u, unit: f, term: term}
}

// apply carries out a decision. Only ticks make room.
func (s *ticker) apply(c *evaluation, ticking bool) {
	f, launched := c.unit, c.launched
	s.recordOutcome(c)
	s.cancelSurplus(c)
	s.placer.planner.Trim(f.uid, c.missing())
	if launched.NoRoom != "" && ticking {
		s.placer.handleShortage(c)
	}
	s.decisions.addEntry(s, c)
	now := s.shell.deps.Now()
	s.applied = core.Applied{
		Decided: c.Decided, Launched: len(launched.Keys), Cancelled: len(c.cancelled), NoRoom: launched.NoRoom != "",
		LacksRoom: c.lacksRoom, ReplaceAgent: !now.Before(s.renewAt),
	}
	if _, renewed := stepFor[core.AgentReplaced](s.shell, f, &s.applied); renewed {
		s.renewAt = now.Add(core.ReplaceAgentEvery)
	}
}

// heldBack is why the cluster keeps wanted instances from being launched.
func (s *ticker) heldBack(c *evaluation) decisionlog.HeldBack {
	if !c.attempted || len(c.launched.Keys) >= c.Wanted() {
		return decisionlog.HeldBack{}
	}
	why := s.shell.deps.Instances.Observe(c.unit.uid).Unavailable
	return decisionlog.HeldBack{Reason: invocation.Excerpt(why.Reason), For: why.RetryAt.Sub(why.At)}
}

func noCapacity(why string, retryAfter time.Duration) invocation.Refusal {
	return invocation.Refusal{
		Reason:     invocation.RefusedNoCapacity,
		Detail:     "no node has room for an instance: " + why,
		RetryAfter: retryAfter,
	}
}

// observe reads a function's instances one level below. It does so before the core reads the
// queue: a ticket that is pulled in between then counts as a busy instance, and not twice.
func (s *ticker) observe(f *unit, u *unitSpec) core.Observed {
	seen := s.shell.deps.Instances.Observe(f.uid)
	_, unconfirmed := s.shell.deps.Ownership.Unconfirmed()
	return core.Observed{
		Created: seen.Created, Creating: seen.Creating, Awaited: seen.Awaited,
		Failing: seen.Failing, Room: s.placer.room(u) + s.pools.spareRoom(f, u.fn), NodesBusy: s.pools.nodesBusy(f, u),
		KindStart: s.shell.starts.mean(kindOf(u.fn)), Unconfirmed: unconfirmed,
	}
}

// discardLosses drops lost instances while launches are held, because most of them reconnect.
// Calls that wait for the others are noticed when the hold ends.
func (s *ticker) discardLosses(active []*unit) {
	for _, f := range active {
		s.shell.step(f, core.Paused{})
	}
}

// noteRun records that Run's loop runs. It precedes everything that may launch.
func (s *ticker) noteRun(now time.Time) {
	if paused := s.pauses.Ran(now); paused > 0 {
		s.shell.deps.Log.Warn("the process was paused; no instances are launched until agents have reconnected",
			"paused", paused, "held", core.PauseHold)
	}
}
