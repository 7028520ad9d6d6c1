package warmpool

import "time"

// leaveGrace is how much longer than an instance may take to start a spare one has that
// has not begun to run. A scheduler ends those that it knows sooner, or within 15 s after it
// has found them.
const leaveGrace = 30 * time.Second

// LeaveBy is when a spare instance must be gone whose agent has not begun to run: it was
// created at some time, and may take that long to start.
//
// The scheduler that ordered it ends it if it does not start. One that was started anew
// looks only for instances of the pools of which it has a share: of any other pool, what its
// predecessor ordered would stay for ever. An agent that runs needs nobody for that. It
// ends if its runtime does not load, or its scheduler does not know it.
func LeaveBy(created time.Time, startup time.Duration) time.Time {
	return created.Add(startup + leaveGrace)
}
