package warmpool

// maxAtOnce bounds how many spare instances of a pool are created in one decision.
// They are for later, and what is created now may be in the way of what is needed now.
const maxAtOnce = 8

// Snapshot is what is known of a pool when it is decided on.
type Snapshot struct {
	// Target is the scheduler's share of the pool.
	Target int
	// Ready spare instances can be taken. Starting ones were ordered and have
	// not said hello yet.
	Ready, Starting int
	// Outdated of the ready and the starting ones are of an earlier revision of
	// the pool.
	Outdated int
	// Failing says that the last one did not start.
	Failing bool
	// NodesFull says that functions have lately found no room on the nodes.
	NodesFull bool
	// LaunchBudget is how many instances may be created now, by what functions have left
	// of the rate.
	LaunchBudget int
}

// Reason is why a decision is as it is.
type Reason string

// Reasons of Decide.
const (
	// ReasonEnough says that there are as many as there should be.
	ReasonEnough Reason = "Enough"
	// ReasonRefill says that there are too few.
	ReasonRefill Reason = "Refill"
	// ReasonSurplus says that there are more than the share, which has shrunk.
	ReasonSurplus Reason = "Surplus"
	// ReasonOutdated says that the Runtime has changed.
	ReasonOutdated Reason = "Outdated"
	// ReasonFailing says that there are too few, and that the last one did not
	// start: one at a time is tried.
	ReasonFailing Reason = "Failing"
	// ReasonNodesFull says that there are too few, and that functions need the room.
	ReasonNodesFull Reason = "Crowded"
	// ReasonRate says that there are too few, and that functions have used the
	// rate up.
	ReasonRate Reason = "Rate"
)

// Decision is what to do about a pool now. Not more than one of the numbers is
// positive.
type Decision struct {
	// Create is how many spare instances to order.
	Create int
	// Replace is how many outdated ones to remove. Others are created once they
	// are gone, so that there is room for them.
	Replace int
	// Remove is how many to remove, those that are not ready first.
	Remove int
	// Why is the reason that decided.
	Why Reason
}

// Decide says what to do about a pool now.
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
		return Decision{Why: ReasonRate}
	case s.Failing && s.Starting > 0:
		return Decision{Why: ReasonFailing}
	case s.Failing:
		return Decision{Create: 1, Why: ReasonFailing}
	}
	return Decision{Create: min(missing, s.LaunchBudget, maxAtOnce), Why: ReasonRefill}
}
