package autoscaler

import "time"

// Snapshot is what a decider knows of one function at one tick.
type Snapshot struct {
	// Arrived is the number of tickets that ever arrived in the queue (the
	// paper's Qend) and Departed that of those that wait no more (Qbegin).
	Arrived  uint64
	Departed uint64
	// Stale of those that wait have waited for Params.StaleAfter or longer, and
	// OldestWait is how long the first of them has.
	Stale      int
	OldestWait time.Duration
	// Created instances can be called, and Busy of them run a call; Creating
	// ones were ordered and are not there yet.
	Created  int
	Busy     int
	Creating int
	// Lost is how many instances ended while they were needed since the
	// last tick.
	Lost int
	// Failing says that the last start failed and that none has succeeded
	// since.
	Failing bool
	// Room is how many more instances there may be, whatever the function's
	// own limits: what the nodes have room for, and what the namespace may
	// still have. It is negative if that is unknown.
	Room int
	// Concurrency is how many calls an instance runs at a time; 0 counts as 1.
	Concurrency int
	// MeanExecution is the mean of the last N execution times, and MeanStart
	// that of the times from order to first pull; 0 if unknown.
	MeanExecution time.Duration
	MeanStart     time.Duration
	// Elapsed is the time since the last decision on the function; 0 if there
	// was none.
	Elapsed time.Duration
	// State is what the last decision asked to remember.
	State State
}

// Waiting is how many tickets wait: the paper's RinQueue.
func (s Snapshot) Waiting() int { return int(s.Arrived - s.Departed) }

// State is what a decider carries from tick to tick: a comparable value of a type
// that is the decider's own, and nil before its first decision.
type State any

// stateOf is what a decider of such a memory remembers. One that takes over from another
// decider begins anew.
func stateOf[M any](s Snapshot) M {
	remembered, _ := s.State.(M)
	return remembered
}

// Params are a decider's constants.
type Params struct {
	// Tick is the time between two decisions, TICK_INTERVAL; the paper's
	// example is 100 ms.
	Tick time.Duration
	// StaleAfter is how long a ticket waits until it is stale, also 100 ms in
	// production.
	StaleAfter time.Duration
}

// staleAfter is StaleAfter, or one tick if that is not set.
func (p Params) staleAfter() time.Duration {
	if p.StaleAfter <= 0 {
		return p.Tick
	}
	return p.StaleAfter
}

// Reason is why a decision is as it is.
type Reason string

// Reasons of the deciders and of Bound.
const (
	// ReasonNoDemand says that nothing waits that needs an instance.
	ReasonNoDemand Reason = "NoDemand"
	// ReasonFirst is the paper's condition 1: nothing was pulled yet and no
	// instance is on its way.
	ReasonFirst Reason = "FirstInstance"
	// ReasonBurst is condition 2: more arrived before the first instance.
	ReasonBurst Reason = "BurstBeforeFirst"
	// ReasonCongestion is condition 3: more wait than arrived last tick.
	ReasonCongestion Reason = "Congestion"
	// ReasonOverload is condition 4: more arrived than all instances can run.
	ReasonOverload Reason = "Overload"
	// ReasonEnough says that a condition held, and that what exists or is on
	// its way suffices.
	ReasonEnough Reason = "Enough"
	// ReasonStale says that calls have waited for Params.StaleAfter.
	ReasonStale Reason = "StaleCalls"
	// ReasonRetry says that the last start failed and is tried again.
	ReasonRetry Reason = "RetryStart"
	// ReasonNoRoom says that there is no room for what is needed.
	ReasonNoRoom Reason = "NoRoom"
	// ReasonRamp says that more calls wait than instances are on their way,
	// and that it is not known yet how long a call takes.
	ReasonRamp Reason = "RampUp"
	// ReasonBacklog says that what waits, or will until a new instance is
	// there, takes the instances too long.
	ReasonBacklog Reason = "Backlog"
	// ReasonRate says that calls arrive at a rate that needs more instances.
	ReasonRate Reason = "ArrivalRate"
	// ReasonStanding says that as many wait as did long ago, though all
	// instances are there.
	ReasonStanding Reason = "StandingQueue"
	// ReasonSurplus says that more instances are on their way than are wanted.
	ReasonSurplus Reason = "Surplus"
	// ReasonReplace says that instances were lost while they were needed.
	ReasonReplace Reason = "ReplaceLost"
	// ReasonMin says that there are fewer instances than the least.
	ReasonMin Reason = "BelowMin"
	// ReasonProof says that a revision is to be proven by the start of an instance.
	ReasonProof Reason = "ProveRevision"
	// ReasonMax says that the most instances exist.
	ReasonMax Reason = "AtMax"
)

// Decision is what to do at this tick.
type Decision struct {
	// Create is how many instances to create, never negative.
	Create int
	// Cancel is how many pending launches are not wanted any more, never more than
	// Creating. Only one of Create and Cancel is positive.
	Cancel int
	// Why is the reason that decided.
	Why Reason
	// Required is how many instances the decider found to be needed; 0 if
	// it did not ask.
	Required int
	// Rate is how many calls arrive in a second, and Horizon the time that was
	// planned for; 0 if the decider did not ask.
	Rate    float64
	Horizon time.Duration
	// RedecideAfter is for how long nothing new is to be decided even if calls come: one that
	// comes later is reason to decide at once, before the next tick. 0 says that the
	// next tick is soon enough.
	RedecideAfter time.Duration
	// State is to be put in the State of the next Snapshot.
	State State
}

// Decider decides how many instances to create.
type Decider func(Snapshot, Params) Decision

// Limits are the minimum and the maximum of a function's instances.
type Limits struct {
	Min int
	// Max is 0 if there is no bound.
	Max int
	// Proof says that Min is the instance that is to prove a revision.
	Proof bool
}

// below is why instances are created that Min asks for.
func (l Limits) below() Reason {
	if l.Proof {
		return ReasonProof
	}
	return ReasonMin
}

// Bound adds replacements for lost instances to a decision and keeps the number
// of instances within limits. An instance that is on its way takes the place of a
// lost one: where many are lost, as on a machine that starves, there would else be a
// new one for each again and again. No launch is cancelled that is needed for Min or for
// a lost instance. Max wins over everything else.
func Bound(d Decision, s Snapshot, l Limits) Decision {
	total := s.Created + s.Creating
	if lost := s.Lost - s.Creating; d.Create < lost {
		d.Create, d.Why = lost, ReasonReplace
	}
	if total+d.Create < l.Min {
		d.Create, d.Why = l.Min-total, l.below()
	}
	if l.Max > 0 && d.Create > 0 && total+d.Create > l.Max {
		d.Create, d.Why = max(0, l.Max-total), ReasonMax
	}
	least := l.Min
	if l.Max > 0 {
		least = min(least, l.Max)
	}
	d.Cancel = max(0, min(d.Cancel, s.Creating-s.Lost, total-least))
	if d.Create > 0 {
		d.Cancel = 0
	}
	if d.Cancel == 0 && d.Why == ReasonSurplus {
		d.Why = ReasonEnough
	}
	return d
}
