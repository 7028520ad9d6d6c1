package queue

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// LeavePolicy says when an idle instance may leave.
type LeavePolicy struct {
	// Min is how many instances always stay.
	Min int
	// IdleTimeout is how long an instance waits before it may leave, and
	// KeepLast how long the last one of the function does. KeepLast counts
	// only if it is the longer.
	IdleTimeout time.Duration
	KeepLast    time.Duration
}

// LeaveAnswer answers an instance that asks to leave.
type LeaveAnswer struct {
	// Granted means that it has left: it will be handed nothing any more.
	Granted bool
	// RetryAfter is how much longer it must wait before it asks again.
	RetryAfter time.Duration
}

// RequestLeave decides whether an instance that has been idle for that long may leave. The
// answer and the removal are one step, so that two instances cannot both leave because the
// other one stays.
func (q *Queue) RequestLeave(cid invocation.CID, idle time.Duration, policy LeavePolicy) (LeaveAnswer, error) {
	in, known := q.instances.joined[cid]
	if !known {
		return LeaveAnswer{}, ErrUnknownInstance
	}
	staying := q.instances.totals.staying(in)
	needed := policy.IdleTimeout
	if staying == 0 {
		needed = max(needed, policy.KeepLast)
	}
	switch {
	case len(in.out) > 0, staying < policy.Min && !in.draining:
		return LeaveAnswer{RetryAfter: policy.IdleTimeout}, nil
	case idle < needed && !in.draining:
		return LeaveAnswer{RetryAfter: needed - idle}, nil
	}
	q.instances.removeInstance(in)
	q.trim()
	return LeaveAnswer{Granted: true}, nil
}

// staying is how many instances remain without this one. Those that have not polled yet do not
// count, because they may never start to work.
func (t *totals) staying(without *instance) int {
	if without != nil && without.ready && !without.draining {
		return t.ready - 1
	}
	return t.ready
}
