package autoscaler

import (
	"math"
	"time"
)

// queueState is the state of a queue as the production rules know it.
type queueState string

const (
	running            queueState = "Running"
	namespaceThrottled queueState = "NamespaceThrottled"
	actionThrottled    queueState = "ActionThrottled"
	flushing           queueState = "Flushing"
	removing           queueState = "Removing"
	idle               queueState = "Idle"
)

// throttling is what the rules want to be done about the namespace's throttle.
type throttling int

const (
	throttleAsItIs throttling = iota
	throttleOn
	throttleOff
)

// unlimited stands for a limit that there is not. Sums of a few of them do not
// overflow.
const unlimited = math.MaxInt32

// openwhiskRules is what the rules are asked about: the rules by which OpenWhisk's
// scheduler has provisioned in production since the paper. They differ from the
// paper's in that the age of what waits, not counters, tells a burst from a
// congestion, and in that they know limits and failures.
type openwhiskRules struct {
	state       queueState
	initialized bool // a first instance was ordered before
	existing    int
	inProgress  int
	// available calls wait, and stale of them have for staleAfter or longer.
	available int
	stale     int
	// execution is the mean of the last execution times; unknown if not positive.
	execution   time.Duration
	staleAfter  time.Duration
	concurrency int // 0 counts as 1

	namespaceLimit int
	actionLimit    int
	// namespaceRoom is the namespace's limit less what it has and what is on its
	// way.
	namespaceRoom int
	// overProvision is how many times its limit a namespace may exceed so that a
	// function without instances gets its first; 0 if it may not.
	overProvision float64
}

// ruleResult is what the rules say.
type ruleResult struct {
	create   int
	why      Reason
	throttle throttling
	// refuse says that everything that waits is to be refused.
	refuse bool
	// pause says that there can be no instance at all, for a limit is 0.
	pause bool
}

func (v openwhiskRules) total() int       { return v.existing + v.inProgress }
func (v openwhiskRules) fresh() int       { return v.available - v.stale }
func (v openwhiskRules) perInstance() int { return max(1, v.concurrency) }

// power is how many calls one instance runs while a call becomes stale: mu.
func (v openwhiskRules) power() float64 {
	if v.execution <= 0 {
		return float64(v.perInstance())
	}
	return float64(v.staleAfter) / float64(v.execution) * float64(v.perInstance())
}

// actionRoom is what the function's own limit leaves.
func (v openwhiskRules) actionRoom() int { return min(v.actionLimit, v.namespaceLimit) - v.total() }

// spareRoom is what over-provisioning leaves to functions without instances.
func (v openwhiskRules) spareRoom() int {
	if v.overProvision <= 0 {
		return 0
	}
	used := v.namespaceLimit - v.namespaceRoom
	return int(math.Ceil(float64(v.namespaceLimit)*v.overProvision)) - used
}

// room is how many instances may be created in all.
func (v openwhiskRules) room() int {
	if v.overProvision > 0 && v.total() == 0 {
		return min(1, max(0, v.spareRoom()))
	}
	return min(v.namespaceRoom, v.actionRoom())
}

// decide is the table: the first rule that matches decides.
func (v openwhiskRules) decide() ruleResult {
	if min(v.namespaceLimit, v.actionLimit) <= 0 { // rule 0
		return ruleResult{why: ReasonNoRoom, pause: v.state != flushing}
	}
	if v.room() <= 0 {
		return v.withoutRoom()
	}
	known, first := v.execution > 0, v.total() == 0
	switch {
	case v.state == running && !known && first && !v.initialized: // rule 2
		return ruleResult{create: 1, why: ReasonFirst}
	case v.state == namespaceThrottled: // rule 3
		return ruleResult{why: ReasonEnough, throttle: throttleOff}
	case v.state == running && first && v.available > 0: // rule 4
		return ruleResult{create: 1, why: ReasonFirst}
	case v.state == flushing && first: // rule 5
		return ruleResult{create: 1, why: ReasonRetry}
	case (v.state == running || v.state == removing) && !known && v.stale > 0: // rule 6
		n := ceilOf(float64(v.stale)/float64(v.perInstance())) - v.inProgress
		return v.place(min(n, v.available), ReasonStale)
	case v.state == running && known: // rule 7
		return v.keepUp()
	case v.state == removing && known && v.stale > 0: // rule 8
		return v.place(v.forStale(), ReasonStale)
	}
	return ruleResult{why: ReasonNoDemand} // rule 9
}

// withoutRoom is rule 1.
func (v openwhiskRules) withoutRoom() ruleResult {
	spare := v.overProvision > 0 && v.spareRoom() > 0
	switch {
	case v.state == running && !spare: // rule 1a
		return ruleResult{why: ReasonNoRoom, throttle: throttleOn, refuse: v.total() == 0}
	case v.state == namespaceThrottled && spare: // rule 1b
		return ruleResult{why: ReasonNoRoom, throttle: throttleOff}
	}
	return ruleResult{why: ReasonNoRoom} // rule 1c
}

// keepUp is rule 7: what is late and what is fresh are provided for separately, and
// added. What is on its way and more than the late need counts for the fresh.
func (v openwhiskRules) keepUp() ruleResult {
	late := 0
	if v.stale > 0 {
		late = v.forStale()
	}
	power, total, fresh := v.power(), v.total(), v.fresh()
	if float64(fresh) >= power*float64(total) && total < fresh {
		n := min(ceilOf(float64(fresh)/power-float64(total)), fresh-total)
		return v.place(n+late, ReasonOverload)
	}
	if late > 0 {
		return v.place(late, ReasonStale)
	}
	if v.available == 0 {
		return ruleResult{why: ReasonNoDemand}
	}
	return ruleResult{why: ReasonEnough}
}

// forStale is what the late calls need and is not on its way; it may be negative.
// What exists is not asked: calls that are late are late in spite of it, and this
// is what heals instances that are believed to exist and do not.
func (v openwhiskRules) forStale() int {
	return min(ceilOf(float64(v.stale)/v.power()), v.stale) - v.inProgress
}

// place creates n instances or as many as there is room for. The namespace is
// throttled if it is the one without room.
func (v openwhiskRules) place(n int, why Reason) ruleResult {
	room := v.room()
	switch {
	case n <= 0:
		return ruleResult{why: ReasonEnough}
	case n <= room:
		return ruleResult{create: n, why: why}
	case room >= v.namespaceRoom:
		return ruleResult{create: room, why: ReasonNoRoom, throttle: throttleOn}
	}
	return ruleResult{create: room, why: ReasonNoRoom}
}

// ceilOf rounds up to a number that sums of do not overflow.
func ceilOf(x float64) int { return int(math.Ceil(min(x, unlimited))) }
