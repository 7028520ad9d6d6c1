package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
)

// Observed is what a tick observes of a function one level below.
type Observed struct {
	// Created instances can be called, Creating ones are starting. Awaited are the Creating
	// ones that ran before the takeover and have not connected since.
	Created, Creating, Awaited int
	// Failing says that the last start failed and that none has succeeded since.
	Failing bool
	// Room is how many more instances fit on the nodes; negative if unknown.
	Room int
	// NodesBusy says that more threads want to run than there are cores on all nodes with room.
	NodesBusy bool
	// KindStart is the mean start time of instances of the same ClusterRuntime; 0 if unknown.
	KindStart time.Duration
	// Unconfirmed says that nobody can confirm that this scheduler owns the function.
	Unconfirmed bool
}

// Ticked asks how many instances the function should have. Decided answers it unless nothing
// can be decided; Applied follows a Decided.
type Ticked struct{ Observed Observed }

// lastDecision is the part of the last decision that the next one, and calls until then, need.
type lastDecision struct {
	at     time.Time // zero if there was none
	memory autoscaler.State
	// runOnCallFrom is from when on the decider wants to run as soon as a call comes; zero if
	// the next tick is soon enough.
	runOnCallFrom time.Time
	// blocked says that the last decision launched nothing although it wanted to. Until one
	// has, only ticks try again.
	blocked bool
	// least is the minimum that it was bounded by.
	least   int
	backlog admission.BacklogEstimate
}

// The numbers are those of docs/architecture.md, "A tick".
func (e *Ticked) apply(f *Function, now time.Time) {
	f.activity.woken = false // events from now on are for the next tick
	o := e.Observed
	// a. Only the owner decides. Tickets may have come while the slot was handed off.
	if f.term == Unserved {
		f.refuseWaiting(NotOwner, now)
		f.park(time.Time{})
		return
	}
	// b. Drop expired tickets, and hand out the others as far as possible.
	f.match(now)
	// c. Wait for adopted instances, and at a standby for the owner.
	if until, held := f.holds(o, now); held {
		if !until.IsZero() {
			f.park(until)
		}
		return
	}
	silent := o.Awaited
	o.Creating, o.Awaited = o.Creating-silent, 0
	// d. Collect the decider's input.
	d := &Decided{Observed: o, Snapshot: f.snapshot(o, now), Floor: f.floor(now, o.KindStart)}
	f.lost, f.coreWaited = nil, 0 // each counts in one snapshot
	// e. Bound the number of instances.
	f.degraded.recordDoubt(o)
	d.Bounds = f.degraded.bound(excludeSilent(silent, f.spec.limits(d.Floor)))
	// f. Decide.
	params := autoscaler.Params{Tick: f.config.Tick, StaleAfter: StaleAfter}
	d.Decision = autoscaler.Bound(f.spec.Decide(d.Snapshot, params), d.Snapshot, d.Bounds)
	f.last.remember(d.Decision, d.Bounds.Min, now)
	f.do(d)
}

// holds reports whether a decision would be premature after a takeover. If no tick has to look at
// the function before a time, it is until then; otherwise until is zero.
func (f *Function) holds(o Observed, now time.Time) (until time.Time, held bool) {
	// Adopted instances may be about to connect. After HelloTime, those that have not no longer count
	// as starting.
	if o.Awaited > 0 && now.Before(f.takenOver.Add(HelloTime)) {
		return time.Time{}, true
	}
	// At a standby, the owner may be there: it may only be starting, or be silent to this scheduler
	// alone, and then both would launch the minimum of each function. A ticket does not wait for it.
	until = f.takenOver.Add(standbyTime)
	switch {
	case f.term.Standby == "" || f.Tickets() > 0 || !now.Before(until):
		return time.Time{}, false
	case f.Waiting() > 0 || len(f.lost) > 0: // calls without tickets may soon have some
		return time.Time{}, true
	}
	return until, true
}

// snapshot makes the decider's input.
func (f *Function) snapshot(o Observed, now time.Time) autoscaler.Snapshot {
	view := f.View(now)
	s := autoscaler.Snapshot{
		Arrived: view.Arrived, Departed: view.Departed,
		Stale: f.queue.Stale(now, StaleAfter), OldestWait: view.OldestWait,
		Created: o.Created, Busy: min(view.Busy, o.Created), Creating: o.Creating,
		Lost: len(f.lost), Failing: o.Failing, Room: o.Room,
		Concurrency:   f.spec.Concurrency,
		MeanExecution: f.estimates.executions.Mean(), MeanStart: f.estimates.meanStart(o.KindStart, f.spec.StartupTimeout),
		CoreWaited: f.coreWaited, AwaitingCore: min(view.AwaitingCore, o.Created), NodesBusy: o.NodesBusy,
		State: f.last.memory,
	}
	if !f.last.at.IsZero() {
		s.Elapsed = max(0, now.Sub(f.last.at))
	}
	return s
}

func (l *lastDecision) remember(d autoscaler.Decision, least int, now time.Time) {
	l.at, l.memory, l.least, l.runOnCallFrom = now, d.State, least, time.Time{}
	if d.RedecideAfter > 0 {
		l.runOnCallFrom = now.Add(d.RedecideAfter)
	}
}

// runsOnCall reports whether a call that comes now requires a decision before the next tick.
func (l *lastDecision) runsOnCall(now time.Time) bool {
	return !l.runOnCallFrom.IsZero() && !now.Before(l.runOnCallFrom)
}

// excludeSilent subtracts instances that have not connected but may run from the maximum.
// Until they count as lost (after 15 s), replacements stay within the maximum; one instance is
// allowed in any case.
func excludeSilent(silent int, l autoscaler.Limits) autoscaler.Limits {
	if l.Max > 0 {
		l.Max = max(1, l.Max-silent)
		l.Min = min(l.Min, l.Max)
	}
	return l
}

// degradedMode says whether nobody can confirm the ownership, and how many instances the
// function had when that began.
type degradedMode struct {
	unconfirmed bool
	before      int
}

// recordDoubt records whether somebody can confirm the ownership.
func (d *degradedMode) recordDoubt(o Observed) {
	if o.Unconfirmed && !d.unconfirmed {
		d.before = o.Created + o.Creating
	}
	d.unconfirmed = o.Unconfirmed
}

// bound limits the function to a fifth more instances than before, and to at least one, while
// nobody can confirm the ownership: another scheduler may launch for the function too.
func (d degradedMode) bound(l autoscaler.Limits) autoscaler.Limits {
	if !d.unconfirmed {
		return l
	}
	most := max(1, d.before+(d.before+4)/5)
	if l.Max == 0 || l.Max > most {
		l.Max = most
	}
	l.Min = min(l.Min, l.Max)
	return l
}

// Proves reports whether the decision is for proving a revision, with no call waiting.
func (d *Decided) Proves() bool { return d.Bounds.Proof && d.Snapshot.Waiting() == 0 }

// Wanted is how many instances to launch: the decided number, or one if calls wait and no room
// is known. That launch finds out why there is no room, and whether some can be made.
func (d *Decided) Wanted() int {
	total := d.Observed.Created + d.Observed.Creating
	short := d.Decision.Create == 0 && d.Decision.Why == autoscaler.ReasonNoRoom && d.Snapshot.Waiting() > 0
	if short && (d.Bounds.Max == 0 || total < d.Bounds.Max) {
		return 1
	}
	return d.Decision.Create
}

// Missing is how many instances the function still needs after so many launches. A decider that sees no
// room asks for fewer than it requires. Missing counts all of them, within the maximum, so that spare
// instances make room for all at once.
func (d *Decided) Missing(launched int) int {
	wanted := d.Wanted()
	if d.Decision.Why == autoscaler.ReasonNoRoom && d.Snapshot.Waiting() > 0 {
		required := d.Decision.Required
		if d.Bounds.Max > 0 {
			required = min(required, d.Bounds.Max)
		}
		wanted = max(wanted, required-d.Observed.Created-d.Observed.Creating)
	}
	return wanted - launched
}

// RoomRetry is how long a function that lacks room is parked: no event says that there is some.
const RoomRetry = 5 * time.Second

// Applied says what was done about a decision: how many instances were launched, whether more
// failed for lack of room, and how many launches were cancelled.
type Applied struct {
	Decided             *Decided
	Launched, Cancelled int
	NoRoom              bool
	// LacksRoom says that the function has no instance, and that no node has had room since its calls
	// wanted one.
	LacksRoom bool
	// ReplaceAgent allows the function to replace one instance with an outdated agent.
	ReplaceAgent bool
}

// The letters go on from those of Ticked.
func (e *Applied) apply(f *Function, now time.Time) {
	d, wanted := e.Decided, e.Decided.Wanted()
	f.last.blocked = wanted > 0 && e.Launched == 0
	// g. Record how fast the queue is worked off, for admission. A function cannot grow
	// if it has reached its maximum, or if this tick found no room.
	instances, most := d.Observed.Created+d.Observed.Creating+e.Launched-e.Cancelled, f.spec.limits(d.Floor).Max
	f.last.backlog = admission.BacklogEstimate{
		Parallel:   instances * f.spec.Concurrency,
		AtCapacity: e.NoRoom || most > 0 && instances >= most,
	}
	// h. Terminate idle instances that should not wait for their own timeouts.
	tooMany := most > 0 && d.Observed.Created > most
	if policy, why := f.spec.surplus(d.Floor, tooMany); why != "" && d.Observed.Created > 0 {
		for _, idle := range f.queue.LongestIdle(now, policy) {
			f.terminateIdle(idle, policy, why, string(why), now)
		}
	}
	// i. Park, unless an instance with an outdated agent has to be replaced.
	if wanted == 0 && d.Snapshot.Waiting() == 0 && d.Observed.Creating == 0 && !tooMany && !f.lacksForDoubt(d) {
		until := f.replaceOutdated(e.ReplaceAgent, d.Floor.Change, now)
		if look := now.Add(RoomRetry); e.LacksRoom && (until.IsZero() || look.Before(until)) {
			until = look
		}
		f.park(until)
	}
}

// lacksForDoubt says that the function has fewer instances than its minimum because nobody can
// confirm the ownership. No event says that somebody can again.
func (f *Function) lacksForDoubt(d *Decided) bool {
	return d.Observed.Unconfirmed && d.Bounds.Min < f.spec.limits(d.Floor).Min
}

// surplus says which idle instances leave before their own timeouts, and why: instances beyond
// the maximum, which was lowered, or which instances exceed that connected late; and all
// instances beyond the minimum if no call is expected.
func (s *Spec) surplus(kept floor.Floor, tooMany bool) (queue.EvictPolicy, TerminateReason) {
	limits := s.limits(kept)
	switch {
	case kept.ReleasesIdle():
		return queue.EvictPolicy{Min: limits.Min, IdleFor: 1}, BecauseNoCall
	case tooMany:
		return queue.EvictPolicy{Min: limits.Max, IdleFor: 1}, BecauseTooMany
	}
	return queue.EvictPolicy{}, ""
}
