package invocation

import "time"

// LongCoreWait is how long a call waits for a core of its node until its instance's scheduler
// hears of it. Shorter waits are counted when the call has ended.
const LongCoreWait = 50 * time.Millisecond

// ShortCoreWait is the part of a wait for a core that nobody heard of while it lasted.
func ShortCoreWait(waited time.Duration) time.Duration { return max(0, min(waited, LongCoreWait)) }
