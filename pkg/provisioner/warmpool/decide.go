package warmpool

// maxAtOnce bounds how many spare instances of a pool are created in one decision. They are
// for later, and may compete with what functions need now.
const maxAtOnce = 8

// Snapshot is the input of a decision on a pool.
type Snapshot struct {
	// Target is this scheduler's part of the pool.
	Target int
	// Ready spare instances can be assigned. Starting ones were launched and have not
	// connected yet.
	Ready, Starting int
	// Outdated is how many of the ready and starting ones have an earlier revision of the
	// pool.
	Outdated int
	// Failing says that the last one did not start.
	Failing bool
	// NodesFull says that functions recently found no room on the nodes.
	NodesFull bool
	// LaunchBudget is how many instances may be created now within the launch rate, after
	// functions.
	LaunchBudget int
}

// Reason is why Decide decided as it did.
type Reason string

// Reasons of Decide.
const (
	// ReasonEnough says that the pool has its size.
	ReasonEnough Reason = "Enough"
	// ReasonRefill says that the pool is too small.
	ReasonRefill Reason = "Refill"
	// ReasonSurplus says that the pool is larger than the part, which has shrunk.
	ReasonSurplus Reason = "Surplus"
	// ReasonOutdated says that the ClusterRuntime has changed.
	ReasonOutdated Reason = "Outdated"
	// ReasonFailing says that the pool is too small, and that the last instance did not start:
	// it tries one at a time.
	ReasonFailing Reason = "Failing"
	// ReasonNodesFull says that the pool is too small, and that functions need the room.
	ReasonNodesFull Reason = "Crowded"
	// ReasonRate says that the pool is too small, and that functions have used up the launch
	// rate.
	ReasonRate Reason = "Rate"
)

// Decision is what to do about a pool now. At most one of its numbers is positive.
type Decision struct {
	// Create is how many spare instances to launch.
	Create int
	// Replace is how many outdated ones to remove. Their replacements are created once they
	// have gone, so that there is room.
	Replace int
	// Remove is how many to remove, those that are not ready first.
	Remove int
	// More says that only a bound on one decision or the launch rate keeps Create below what the
	// pool lacks: the next tick may create more.
	More bool
	// Why is the deciding reason.
	Why Reason
}

// Decide decides what to do about a pool now.
func Decide(s Snapshot) Decision {
	have := s.Ready + s.Starting
	missing := s.Target - have
	switch {
	case s.Outdated > 0:
		return Decision{Replace: s.Outdated, Why: ReasonOutdated}
	case missing < 0:
		return Decision{Remove: -missing, Why: ReasonSurplus}
	case missing == 0:
		return Decision{Why: ReasonEnough}
	case s.NodesFull:
		return Decision{Why: ReasonNodesFull}
	case s.LaunchBudget <= 0:
		return Decision{More: true, Why: ReasonRate}
	case s.Failing && s.Starting > 0:
		return Decision{Why: ReasonFailing}
	case s.Failing:
		return Decision{Create: 1, Why: ReasonFailing}
	}
	create := min(missing, s.LaunchBudget, maxAtOnce)
	return Decision{Create: create, More: create < missing, Why: ReasonRefill}
}
