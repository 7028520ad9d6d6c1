package autoscaler

import (
	"math"
	"time"
)

// queueState is the state of a queue in OpenWhisk's rules.
type queueState string

const (
	running            queueState = "Running"
	namespaceThrottled queueState = "NamespaceThrottled"
	flushing           queueState = "Flushing"
)

// throttling is the change of the namespace's throttle that the rules ask for.
type throttling int

const (
	throttleAsItIs throttling = iota
	throttleOn
	throttleOff
)

// unlimited stands for no limit. Sums of a few of them do not overflow.
const unlimited = math.MaxInt32

// openwhiskRules is the input of the rules by which OpenWhisk's scheduler provisions in
// production since the paper. They differ from the paper's in two ways: the age of waiting
// calls, not counters, distinguishes a burst from congestion, and they consider limits and
// failures. Rules for states and settings that do not occur here are left out: 0 (a limit of 0),
// 1b (over-provisioning) and 8 (a queue that is being removed).
type openwhiskRules struct {
	state       queueState
	initialized bool // a first instance was launched before
	existing    int
	inProgress  int
	// available calls wait, stale of them for staleAfter or longer.
	available int
	stale     int
	// execution is the mean of the last execution times; unknown if not positive.
	execution   time.Duration
	staleAfter  time.Duration
	concurrency int // 0 counts as 1

	// room is the namespace's limit minus its existing and starting instances.
	room int
}

// ruleResult is the result of the rules.
type ruleResult struct {
	create   int
	why      Reason
	throttle throttling
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

// decide is the rule table: the first rule that matches decides.
func (v openwhiskRules) decide() ruleResult {
	if v.room <= 0 {
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
	case v.state == running && !known && v.stale > 0: // rule 6
		n := ceilOf(float64(v.stale)/float64(v.perInstance())) - v.inProgress
		return v.place(min(n, v.available), ReasonStale)
	case v.state == running && known: // rule 7
		return v.keepUp()
	}
	return ruleResult{why: ReasonNoDemand} // rule 9
}

// withoutRoom is rule 1.
func (v openwhiskRules) withoutRoom() ruleResult {
	if v.state == running { // rule 1a
		return ruleResult{why: ReasonNoRoom, throttle: throttleOn}
	}
	return ruleResult{why: ReasonNoRoom} // rule 1c
}

// keepUp is rule 7: it adds the needs of stale and of fresh calls. Starting instances beyond
// the need of the stale calls count for the fresh ones.
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

// forStale is the need of the stale calls minus the starting instances; it may be negative.
// Existing instances do not count: the calls are stale in spite of them, and so instances that
// exist only on record are replaced.
func (v openwhiskRules) forStale() int {
	return min(ceilOf(float64(v.stale)/v.power()), v.stale) - v.inProgress
}

// place creates n instances, or as many as there is room for. Lack of room throttles the namespace.
func (v openwhiskRules) place(n int, why Reason) ruleResult {
	switch {
	case n <= 0:
		return ruleResult{why: ReasonEnough}
	case n <= v.room:
		return ruleResult{create: n, why: why}
	}
	return ruleResult{create: v.room, why: ReasonNoRoom, throttle: throttleOn}
}

// ceilOf rounds up, to a number whose sums do not overflow.
func ceilOf(x float64) int { return int(math.Ceil(min(x, unlimited))) }
