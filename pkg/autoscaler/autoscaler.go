package autoscaler

import "time"

// Snapshot is the input of a decider: one function at one tick.
type Snapshot struct {
	// Arrived is the number of tickets that ever arrived in the queue (the paper's Qend), and
	// Departed the number of those that no longer wait (Qbegin). Departed falls when tickets
	// that were handed out come back.
	Arrived  uint64
	Departed uint64
	// Stale is how many waiting tickets have waited for Params.StaleAfter or longer, and
	// OldestWait is how long the oldest has.
	Stale      int
	OldestWait time.Duration
	// Created instances can be called, and Busy of them run a call; Creating ones were
	// launched and are still starting.
	Created  int
	Busy     int
	Creating int
	// Lost is how many instances ended while they were needed, since the last tick.
	Lost int
	// Failing says that the last start failed and that none has succeeded since.
	Failing bool
	// Room is how many more instances fit, regardless of the function's own limits: on the
	// nodes and within the namespace. It is negative if unknown.
	Room int
	// Concurrency is how many calls an instance runs at a time; 0 counts as 1.
	Concurrency int
	// MeanExecution is the mean of the last N execution times, and MeanStart that of the times
	// from launch to first pull; 0 if unknown.
	MeanExecution time.Duration
	MeanStart     time.Duration
	// AwaitingCore of the busy instances have a call that waits for a core of its node.
	// CoreWaited is how long calls that have ended since the last decision waited before, as far
	// as AwaitingCore did not count them.
	AwaitingCore int
	CoreWaited   time.Duration
	// NodesBusy says that on all nodes with room, more threads want to run than there are cores.
	NodesBusy bool
	// Elapsed is the time since the last decision on the function; 0 if there was none.
	Elapsed time.Duration
	// State is the State of the last decision.
	State State
}

// Waiting is the number of waiting tickets: the paper's RinQueue.
func (s Snapshot) Waiting() int { return int(s.Arrived - s.Departed) }

// coreRoom is how many more instances are of use although they share too few cores: beside each one that
// computes, another one may wait to go on with its core. It is negative if nobody waits for a core, or a node
// with room has one to spare.
func (s Snapshot) coreRoom() int {
	awaiting := float64(s.AwaitingCore)
	if s.Elapsed > 0 {
		awaiting += s.CoreWaited.Seconds() / s.Elapsed.Seconds()
	}
	if !s.NodesBusy || awaiting == 0 {
		return -1
	}
	computing := max(1, float64(s.Busy)-awaiting)
	return max(0, int(2*computing)-s.Created-s.Creating)
}

// State is what a decider carries from tick to tick: a comparable value of the decider's own
// type, nil before its first decision.
type State any

// stateOf is the decider's own state. A decider that replaces another one starts with the zero
// state.
func stateOf[M any](s Snapshot) M {
	remembered, _ := s.State.(M)
	return remembered
}

// Params are a decider's constants.
type Params struct {
	// Tick is the time between two decisions, TICK_INTERVAL; the paper's example is 100 ms.
	Tick time.Duration
	// StaleAfter is how long a ticket waits until it is stale; OpenWhisk uses 100 ms.
	StaleAfter time.Duration
}

// staleAfter is StaleAfter, or one tick if that is not set.
func (p Params) staleAfter() time.Duration {
	if p.StaleAfter <= 0 {
		return p.Tick
	}
	return p.StaleAfter
}

// Reason is why a decider decided as it did.
type Reason string

// Reasons of the deciders and of Bound.
const (
	// ReasonNoDemand says that no waiting call needs an instance.
	ReasonNoDemand Reason = "NoDemand"
	// ReasonFirst is the paper's condition 1: no ticket was pulled yet and no instance is
	// starting.
	ReasonFirst Reason = "FirstInstance"
	// ReasonBurst is condition 2: more calls arrived before the first instance.
	ReasonBurst Reason = "BurstBeforeFirst"
	// ReasonCongestion is condition 3: more calls wait than arrived last tick.
	ReasonCongestion Reason = "Congestion"
	// ReasonOverload is condition 4: more calls arrived than all instances can run.
	ReasonOverload Reason = "Overload"
	// ReasonEnough says that a condition held, and that the existing and starting instances
	// suffice.
	ReasonEnough Reason = "Enough"
	// ReasonStale says that calls have waited for Params.StaleAfter.
	ReasonStale Reason = "StaleCalls"
	// ReasonRetry says that the last start failed and is tried again.
	ReasonRetry Reason = "RetryStart"
	// ReasonNoRoom says that the needed instances do not fit.
	ReasonNoRoom Reason = "NoRoom"
	// ReasonNoCores says that as many instances wait for cores of their nodes as compute, or would with
	// more of them, and that the nodes with room have none to spare.
	ReasonNoCores Reason = "NoCores"
	// ReasonRamp says that more calls wait than instances are starting, and that the time of a
	// call is still unknown.
	ReasonRamp Reason = "RampUp"
	// ReasonBacklog says that the calls that wait now, or will when a new instance has
	// started, would take the instances too long.
	ReasonBacklog Reason = "Backlog"
	// ReasonRate says that calls arrive at a rate that needs more instances.
	ReasonRate Reason = "ArrivalRate"
	// ReasonStanding says that the queue has not become shorter for long, although no instance
	// is starting.
	ReasonStanding Reason = "StandingQueue"
	// ReasonSurplus says that more instances are starting than are needed.
	ReasonSurplus Reason = "Surplus"
	// ReasonReplace says that instances were lost while they were needed.
	ReasonReplace Reason = "ReplaceLost"
	// ReasonMin says that the function has fewer instances than its minimum.
	ReasonMin Reason = "BelowMin"
	// ReasonProof says that the start of an instance has to prove a revision.
	ReasonProof Reason = "ProveRevision"
	// ReasonMax says that the maximum number of instances exists.
	ReasonMax Reason = "AtMax"
)

// Decision is what to do in this tick.
type Decision struct {
	// Create is how many instances to create, never negative.
	Create int
	// Cancel is how many pending launches to cancel, at most Creating. Only one of Create and
	// Cancel is positive.
	Cancel int
	// Why is the deciding reason.
	Why Reason
	// Required is how many instances the decider computed to be needed; 0 if it computed none.
	Required int
	// Rate is the arrival rate in calls per second, and Horizon the time that was planned for;
	// 0 if the decider computed none.
	Rate    float64
	Horizon time.Duration
	// RedecideAfter is from when on a call is reason to decide at once, before the next tick.
	// 0 says that the next tick is soon enough.
	RedecideAfter time.Duration
	// State is for the State of the next Snapshot.
	State State
}

// Decider decides how many instances to create.
type Decider func(Snapshot, Params) Decision

// Limits are the minimum and the maximum of a function's instances.
type Limits struct {
	Min int
	// Max is 0 for no maximum.
	Max int
	// Proof says that Min is the instance that proves a revision.
	Proof bool
}

// below is the reason for creating instances up to Min.
func (l Limits) below() Reason {
	if l.Proof {
		return ReasonProof
	}
	return ReasonMin
}

// Bound adds replacements for lost instances to a decision and keeps the number of instances
// within limits. A starting instance replaces a lost one: where many are lost, as on a machine
// that is short of CPU, each would otherwise be replaced again and again. Bound cancels no
// launch that Min or a lost instance needs. Max wins over everything else. Instances that would
// wait for cores like the others are not created.
func Bound(d Decision, s Snapshot, l Limits) Decision {
	if most := s.coreRoom(); most >= 0 && d.Create > most {
		d.Create, d.Why = most, ReasonNoCores
	}
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
