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
func (t *ticker) tick() {
	begun := t.shell.deps.Now()
	// 1. Read which instances have ended, and wake functions whose timers have expired.
	t.placer.beginTick(begun)
	for _, u := range t.shell.timers.due(begun) {
		t.shell.step(u, core.Woken{})
	}
	active := t.shell.units.listActive()
	// 2. Launch nothing after a pause of the process: what it observes then is old.
	if t.noteRun(begun); t.pauses.Holding(begun) {
		t.discardLosses(active)
		return
	}
	// 3. Observe and decide, function by function.
	all := make([]*evaluation, 0, len(active))
	for _, u := range active {
		if e := t.evaluate(u); e != nil {
			all = append(all, e)
		}
	}
	// 4. Launch instances, in turns of the namespaces.
	t.allocate(all)
	// 5. Cancel launches that are no longer wanted, make room where some is lacking, and let
	// each function apply its decision.
	for _, e := range roundRobin(all) {
		t.apply(e, true)
	}
	// 6. Ask other schedulers for room that could not be made, and make room for their
	// requests.
	t.peerRoom.setShortages(t.placer.planner.Shortages())
	t.placer.lend(begun)
	// 7. Bring warm pools to their size with the remaining rate and room.
	t.pools.maintainPools()
	t.shell.metrics.observeTick(t.shell.deps.Now().Sub(begun))
}

// runNow decides on a function before the next tick, unless that is no longer needed.
func (t *ticker) runNow(u *unit) {
	now := t.shell.deps.Now()
	t.noteRun(now)
	left := t.budget.LeftNow(now)
	if left == 0 || !t.needsRun(u) || t.pauses.Holding(now) {
		return
	}
	if e := t.evaluate(u); e != nil {
		t.launch(e, min(left, e.Wanted()))
		t.apply(e, false)
	}
}

// needsRun reports whether a waiting call requires a decision before the next tick.
func (t *ticker) needsRun(u *unit) bool {
	there := t.shell.hasInstance(u)
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.NeedsRun(t.shell.deps.Now(), there)
}

// evaluate decides for one function. It returns nil if nothing can be decided.
func (t *ticker) evaluate(u *unit) *evaluation {
	if t.shell.lookup(u.uid) != u {
		return nil // it was deleted
	}
	t.shell.syncOwnership(u) // what was taken over just now is observed, too
	spec := u.spec()
	observed := t.observe(u, spec)
	term := t.shell.slots.term(u.slot)
	u.mu.Lock()
	defer u.mu.Unlock()
	term, _ = t.shell.syncOwnershipLocked(u, term)
	now := t.shell.deps.Now()
	t.ticked.Observed = observed
	d, is := core.AnswerOf[*core.Decided](t.shell.stepAt(u, now, &t.ticked))
	if !is {
		return nil
	}
	u.stats.plan = u.stats.plan.after(d.Decision, d.Snapshot, now)
	return &evaluation{Decided: d, unitSpec: spec, unit: u, term: term}
}

// apply carries out a decision. Only ticks make room.
func (t *ticker) apply(e *evaluation, ticking bool) {
	u, launched := e.unit, e.launched
	t.recordOutcome(e)
	t.cancelSurplus(e)
	t.placer.planner.Trim(u.uid, e.missing())
	if launched.NoRoom != "" && ticking {
		t.placer.handleShortage(e)
	}
	t.decisions.addEntry(t, e)
	now := t.shell.deps.Now()
	t.applied = core.Applied{
		Decided: e.Decided, Launched: len(launched.Keys), Cancelled: len(e.cancelled), NoRoom: launched.NoRoom != "",
		LacksRoom: e.lacksRoom, ReplaceAgent: !now.Before(t.renewAt),
	}
	if _, renewed := stepFor[core.AgentReplaced](t.shell, u, &t.applied); renewed {
		t.renewAt = now.Add(core.ReplaceAgentEvery)
	}
}

// heldBack is why the cluster keeps wanted instances from being launched.
func (t *ticker) heldBack(e *evaluation) decisionlog.HeldBack {
	if !e.attempted || len(e.launched.Keys) >= e.Wanted() {
		return decisionlog.HeldBack{}
	}
	why := t.shell.deps.Instances.Observe(e.unit.uid).Unavailable
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
func (t *ticker) observe(u *unit, spec *unitSpec) core.Observed {
	seen := t.shell.deps.Instances.Observe(u.uid)
	_, unconfirmed := t.shell.deps.Ownership.Unconfirmed()
	return core.Observed{
		Created: seen.Created, Creating: seen.Creating, Awaited: seen.Awaited,
		Failing: seen.Failing, Room: t.placer.room(spec) + t.pools.spareRoom(u, spec.fn), NodesBusy: t.pools.nodesBusy(u, spec),
		KindStart: t.shell.starts.mean(kindOf(spec.fn)), Unconfirmed: unconfirmed,
	}
}

// discardLosses drops lost instances while launches are held, because most of them reconnect.
// Calls that wait for the others are noticed when the hold ends.
func (t *ticker) discardLosses(active []*unit) {
	for _, u := range active {
		t.shell.step(u, core.Paused{})
	}
}

// noteRun records that Run's loop runs. It precedes everything that may launch.
func (t *ticker) noteRun(now time.Time) {
	if paused := t.pauses.Ran(now); paused > 0 {
		t.shell.deps.Log.Warn("the process was paused; no instances are launched until agents have reconnected",
			"paused", paused, "held", core.PauseHold)
	}
}
