package warmpool

import "time"

// leaveGrace is added to the startup timeout of a spare instance before it counts as left
// over. A scheduler ends the instances that it knows sooner, or within 15 s after it has found
// them.
const leaveGrace = 30 * time.Second

// LeaveBy is when a spare instance must be gone whose agent has not begun to run, given when
// it was created and how long it may take to start.
//
// The scheduler that launched it ends it if it does not start. A restarted scheduler looks
// only at pools of which it has a part; an instance of any other pool would stay forever. An
// agent that runs ends by itself if its runtime does not load, or if its scheduler does not
// know it.
func LeaveBy(created time.Time, startup time.Duration) time.Time {
	return created.Add(startup + leaveGrace)
}
