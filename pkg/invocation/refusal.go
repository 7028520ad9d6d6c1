package invocation

import "time"

// RefusalReason is why a ticket is not in a queue and will not be.
type RefusalReason string

const (
	// RefusedQueueFull says that the function's queue is at its bound.
	RefusedQueueFull RefusalReason = "QueueFull"
	// RefusedUnknownFunction says that the scheduler has no such function.
	RefusedUnknownFunction RefusalReason = "UnknownFunction"
	// RefusedCannotStart says that instances of the function fail to start.
	RefusedCannotStart RefusalReason = "CannotStart"
	// RefusedNotOwner says that the scheduler does not own the function's
	// slot, or is going away.
	RefusedNotOwner RefusalReason = "NotOwner"
	// RefusedNoCapacity says that no instance exists and no node has room.
	RefusedNoCapacity RefusalReason = "NoCapacity"
	// RefusedRate says that the function's limit on calls in a second is
	// reached.
	RefusedRate RefusalReason = "RateLimited"
	// RefusedConcurrency says that the function's limit on calls at a time is
	// reached.
	RefusedConcurrency RefusalReason = "ConcurrencyLimited"
	// RefusedWait says that the call would wait for longer than it is wanted.
	RefusedWait RefusalReason = "WaitTooLong"
)

// Refusal says why a call that was not claimed will not be.
type Refusal struct {
	Reason RefusalReason
	// Detail is for the caller to read.
	Detail string
	// RetryAfter is when it makes sense to try again; 0 if unknown.
	RetryAfter time.Duration
	// Admitted says that the scheduler had admitted the call before.
	Admitted bool
}
