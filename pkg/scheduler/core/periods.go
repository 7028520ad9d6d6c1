package core

import "time"

// Periods of a scheduler, and the defaults of Config.
const (
	// DefaultTick is the time between two decisions.
	DefaultTick = 100 * time.Millisecond
	// AuditEvery is how often all functions are compared with the served slots. A function
	// with a call or an instance that arrives is compared at once.
	AuditEvery = 250 * time.Millisecond
	// ReconcileEvery is how often the state is compared with the level below. A difference
	// that two successive audits find is repaired, so a lost event is repaired within two
	// periods.
	ReconcileEvery = 5 * time.Second
	// ReplaceAgentEvery is how often a scheduler replaces an instance with an outdated agent:
	// 3,600 an hour over all functions. ReplaceAgentRetry is how often a parked function with
	// such instances asks for its turn.
	ReplaceAgentEvery = time.Second
	ReplaceAgentRetry = 10 * time.Second
	// DefaultClaimGrace is how long an instance may hold a ticket unclaimed.
	DefaultClaimGrace = 2 * time.Second
	// DefaultMaxQueued is how many tickets may wait.
	DefaultMaxQueued = 10_000
	// DefaultExecutions is the number of recent executions and starts that a mean covers.
	DefaultExecutions = 10
)

// Bounds of SilenceLimit.
const (
	silentIntervals = 4
	minSilence      = time.Second
	MaxSilence      = time.Minute
)

// SilenceLimit is how long an instance that sends every interval may be silent: 4 intervals,
// at least 1 s and at most 1 min. The bounds are there because the agent supplies the interval
// and is not trusted.
func SilenceLimit(every time.Duration) time.Duration {
	return min(max(silentIntervals*min(every, MaxSilence), minSilence), MaxSilence)
}
