package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// LeavePolicy says when an instance that waits in vain may leave.
type LeavePolicy struct {
	// Min is how many instances stay in any case.
	Min int
	// IdleTimeout is how long an instance waits before it may leave, and
	// KeepLast how long the last one of the function does. KeepLast counts
	// only if it is the longer.
	IdleTimeout time.Duration
	KeepLast    time.Duration
}

// LeaveAnswer is what an instance that asked to leave is told.
type LeaveAnswer struct {
	// Granted means that it has left: it will be handed nothing any more.
	Granted bool
	// AskAgain is how much longer it must wait before it asks again.
	AskAgain time.Duration
}

// RequestLeave decides whether an instance that has been idle for so long may
// leave. Because the answer and the removal are one step, two instances cannot
// both leave in the belief that the other one stays.
func (q *Queue) RequestLeave(cid invocation.CID, idle time.Duration, policy LeavePolicy) (LeaveAnswer, error) {
	in, known := q.instances.joined[cid]
	if !known {
		return LeaveAnswer{}, ErrUnknownInstance
	}
	staying := q.instances.crowd.staying(in)
	needed := policy.IdleTimeout
	if staying == 0 {
		needed = max(needed, policy.KeepLast)
	}
	switch {
	case len(in.out) > 0, staying < policy.Min && !in.retired:
		return LeaveAnswer{AskAgain: policy.IdleTimeout}, nil
	case idle < needed && !in.retired:
		return LeaveAnswer{AskAgain: needed - idle}, nil
	}
	q.instances.remove(in)
	return LeaveAnswer{Granted: true}, nil
}

// staying is how many instances there would be without this one. Those that
// have not asked for work yet do not count: they may never come to work.
func (c *crowd) staying(without *instance) int {
	if without != nil && without.asked && !without.retired {
		return c.asked - 1
	}
	return c.asked
}
