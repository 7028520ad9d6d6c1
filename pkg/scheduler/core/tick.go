package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/queue/admission"
)

// Observed is what a tick sees of a function one level below.
type Observed struct {
	// Created instances can be called, Creating ones are on their way. Awaited are
	// those of Creating that ran before the function was taken over, and have not said
	// hello since.
	Created, Creating, Awaited int
	// Failing says that the last start failed and that none has succeeded since.
	Failing bool
	// Room is for how many more instances there is room; negative if that is unknown.
	Room int
	// KindStart is how long instances of the same kind take to start; 0 if unknown.
	KindStart time.Duration
	// Unconfirmed says that nobody can confirm that the function is served here.
	Unconfirmed bool
}

// Ticked decides how many instances there should be. Decided answers it, or nothing if
// there is nothing to decide; Concluded follows.
type Ticked struct{ Observed Observed }

// lastDecision is what the next decision, and calls until then, need to know of the last.
type lastDecision struct {
	at     time.Time // zero if there was none
	memory autoscaler.State
	// runOnCallFrom is from when on the decider wants to be asked as soon as a call comes;
	// zero if the next tick is soon enough.
	runOnCallFrom time.Time
	// blocked says that the last order had no effect: until another one has, only
	// ticks try again.
	blocked bool
	backlog admission.BacklogEstimate
}

// The numbers are those of docs/architecture.md, "A tick".
func onTicked(f *Function, e *Ticked, now time.Time) {
	f.activity.woken = false // what happens from now on is for the next tick
	o := e.Observed
	// a. Only the owner decides. Tickets may have come as the slot went.
	if f.term == Unserved {
		f.refuseWaiting(NotOwner, now)
		f.park(time.Time{})
		return
	}
	// b. Forget calls that nobody waits for any more, and hand out what can be.
	f.match(now)
	// c. Instances that were taken over have the time to say hello. Those that did not
	// say it in time do not count as coming any more.
	if o.Awaited > 0 && now.Before(f.takenOver.Add(HelloTime)) {
		return
	}
	silent := o.Awaited
	o.Creating, o.Awaited = o.Creating-silent, 0
	// d. What is so now.
	d := &Decided{Observed: o, Snapshot: f.snapshot(o, now), Floor: f.Floor(now, o.KindStart)}
	// e. How many there may be.
	d.Bounds = f.degraded.bound(excludeSilent(silent, f.spec.limits(d.Floor)), o)
	// f. Decide, and remember it.
	params := autoscaler.Params{Tick: f.config.Tick, StaleAfter: StaleAfter}
	d.Decision = autoscaler.Bound(f.spec.Decide(d.Snapshot, params), d.Snapshot, d.Bounds)
	f.remember(d.Decision, now)
	f.do(d)
}

// snapshot makes the value that is decided on. Lost instances count once.
func (f *Function) snapshot(o Observed, now time.Time) autoscaler.Snapshot {
	view := f.queue.View(now)
	s := autoscaler.Snapshot{
		Arrived: view.Arrived, Departed: view.Departed,
		Stale: f.queue.Stale(now, StaleAfter), OldestWait: view.OldestWait,
		Created: o.Created, Busy: min(view.Busy, o.Created), Creating: o.Creating,
		Lost: f.lost, Failing: o.Failing, Room: o.Room,
		Concurrency:   f.spec.Concurrency,
		MeanExecution: f.estimates.executions.Mean(), MeanStart: f.estimates.meanStart(o.KindStart, f.spec.StartupTimeout),
		State: f.lastDecision.memory,
	}
	if !f.lastDecision.at.IsZero() {
		s.Elapsed = max(0, now.Sub(f.lastDecision.at))
	}
	f.lost = 0
	return s
}

func (l *lastDecision) remember(d autoscaler.Decision, now time.Time) {
	l.at, l.memory, l.runOnCallFrom = now, d.State, time.Time{}
	if d.RedecideAfter > 0 {
		l.runOnCallFrom = now.Add(d.RedecideAfter)
	}
}

// runsOnCall tells whether a call that comes now is reason to decide before the next tick.
func (l *lastDecision) runsOnCall(now time.Time) bool {
	return !l.runOnCallFrom.IsZero() && !now.Before(l.runOnCallFrom)
}

// NeedsRun tells whether a call that waits is not to wait for the next tick; there says
// that the function has instances, or that some are on their way.
func (l *lastDecision) NeedsRun(now time.Time, there bool) bool {
	return !l.blocked && (!there || l.runsOnCall(now))
}

// DecidedAt is when the last decision was made; zero if there was none.
func (l *lastDecision) DecidedAt() time.Time { return l.at }

// Blocked tells whether the last order had no effect.
func (l *lastDecision) Blocked() bool { return l.blocked }

// excludeSilent leaves the instances out of the maximum that were not heard of, but may run:
// until they are given up (after 15 s), others take their places only up to the maximum,
// or one if that is all that can be reached.
func excludeSilent(silent int, l autoscaler.Limits) autoscaler.Limits {
	if l.Max > 0 {
		l.Max = max(1, l.Max-silent)
		l.Min = min(l.Min, l.Max)
	}
	return l
}

// degradedMode is whether nobody can confirm the ownership, and how many instances there were
// when that began.
type degradedMode struct {
	unconfirmed bool
	before      int
}

// bound keeps to the instances that there were and a fifth more, and to one in any case,
// while nobody can confirm the ownership: somebody else may provide for the function too.
func (d *degradedMode) bound(l autoscaler.Limits, o Observed) autoscaler.Limits {
	if o.Unconfirmed && !d.unconfirmed {
		d.before = o.Created + o.Creating
	}
	d.unconfirmed = o.Unconfirmed
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

// Proves tells whether what is wanted is to prove a revision, and no call waits for it.
func (d *Decided) Proves() bool { return d.Bounds.Proof && d.Snapshot.Waiting() == 0 }

// Wanted is how many instances are to be ordered: what was decided; or one, where no
// room is known for any. The order finds out why not, and whether room is to be made.
func (d *Decided) Wanted() int {
	total := d.Observed.Created + d.Observed.Creating
	short := d.Decision.Create == 0 && d.Decision.Why == autoscaler.ReasonNoRoom && d.Snapshot.Waiting() > 0
	if short && (d.Bounds.Max == 0 || total < d.Bounds.Max) {
		return 1
	}
	return d.Decision.Create
}

// Applied says what became of a decision: how many instances were ordered, why there
// were no more if that was for want of room, and how many that were on their way were
// withdrawn.
type Applied struct {
	Decided             *Decided
	Launched, Cancelled int
	NoRoom              bool
	// ReplaceAgent says that one instance may be replaced for the age of its agent.
	ReplaceAgent bool
}

// The letters go on from those of Ticked.
func onApplied(f *Function, e *Applied, now time.Time) {
	d, wanted := e.Decided, e.Decided.Wanted()
	f.lastDecision.blocked = wanted > 0 && e.Launched == 0
	// g. Note how fast the queue is worked off, for admission. A function cannot grow
	// if it has all the instances that it may have, or if this tick found no room.
	instances, most := d.Observed.Created+d.Observed.Creating+e.Launched-e.Cancelled, f.spec.limits(d.Floor).Max
	f.lastDecision.backlog = admission.BacklogEstimate{
		Parallel:   instances * f.spec.Concurrency,
		AtCapacity: e.NoRoom || most > 0 && instances >= most,
	}
	// h. Let idle instances go that are not to wait until their own times are over.
	tooMany := most > 0 && d.Observed.Created > most
	if policy, why := f.spec.surplus(d.Floor, tooMany); why != "" && d.Observed.Created > 0 {
		for _, idle := range f.queue.LongestIdle(now, policy) {
			f.terminateIdle(idle, policy, why, string(why), now)
		}
	}
	// i. Rest, unless an instance is to be replaced for its agent.
	if wanted == 0 && d.Snapshot.Waiting() == 0 && d.Observed.Creating == 0 && !tooMany {
		f.park(f.replaceOutdated(e.ReplaceAgent, d.Floor.Change, now))
	}
}

// surplus says which idle instances go before their own times are over, and why: those
// beyond the maximum, when it was lowered or some came back that nobody could reach while
// others were ordered; and all beyond the minimum when no call is near.
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
