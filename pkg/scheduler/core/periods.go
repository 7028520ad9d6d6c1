package core

import "time"

// How often a scheduler looks at what, and what Config has by default.
const (
	// DefaultTick is the time between two decisions.
	DefaultTick = 100 * time.Millisecond
	// AuditEvery is how often all functions are compared with the slots that are
	// served. A function that anybody asks for is compared at once.
	AuditEvery = 250 * time.Millisecond
	// ReconcileEvery is how often what is believed is compared with the level below it.
	// What two successive looks find is mended, so that a lost event heals within two of
	// them.
	ReconcileEvery = 5 * time.Second
	// ReplaceAgentEvery is how often a scheduler replaces an instance for the age of its agent:
	// 3,600 an hour, of all functions. ReplaceAgentRetry is how often a function that has such
	// instances, and rests, asks whether it is its turn.
	ReplaceAgentEvery = time.Second
	ReplaceAgentRetry = 10 * time.Second
	// DefaultClaimGrace is how long an instance may hold a ticket unclaimed.
	DefaultClaimGrace = 2 * time.Second
	// DefaultMaxQueued is how many tickets may wait.
	DefaultMaxQueued = 10_000
	// DefaultExecutions is how many executions and starts a mean is taken of.
	DefaultExecutions = 10
)

// An instance that says how often it speaks is given up when it was silent for as long
// as silentIntervals of that, at least minSilence and at most MaxSilence.
const (
	silentIntervals = 4
	minSilence      = time.Second
	MaxSilence      = time.Minute
)

// SilenceLimit is how long an instance may be silent that speaks so often.
func SilenceLimit(every time.Duration) time.Duration {
	return min(max(silentIntervals*min(every, MaxSilence), minSilence), MaxSilence)
}
