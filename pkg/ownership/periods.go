package ownership

import "time"

const (
	// HandoverDelay is how long a scheduler that was told to stop, and has given its
	// slots away, tells others where to go, unless it is configured otherwise.
	HandoverDelay = 5 * time.Second
	// SeedAfter is how long etcd may take before a scheduler is asked who owns the slots.
	SeedAfter = 2 * time.Second
)
