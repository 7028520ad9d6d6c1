package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Observed is what is seen of an invocation one level below: of its function, of the
// scheduler that has its ticket, and of the instance that has the call.
type Observed struct {
	// Deleted says that its function is gone.
	Deleted bool
	// Moved says that its last ticket went to a scheduler that does not serve the
	// function any more, or by a stream that has ended since.
	Moved bool
	// StreamEnded says that the stream of its attempt has ended.
	StreamEnded bool
}

// Due tells whether an audit may find something if StreamEnded is false: nobody has claimed
// an invocation that waits for so long that its ticket may be lost, or moved says that it
// is, or the instance that has it should have ended.
func (v *Invocation) Due(now time.Time, moved bool) bool {
	switch v.phase {
	case Queued:
		return v.ticket.due(now, moved)
	case Claimed:
		return !now.Before(v.runBy)
	}
	return false
}

// Audit compares what is believed of an invocation with what is observed, and mends what
// a lost event left behind: a ticket that no queue has is sent again, and nobody waits
// for a function that was deleted, for an instance beyond its deadline, or for one whose
// stream ended before an answer began. Two audits in a row must see that last one, which
// one alone may only have seen before the event that tells of it. An invocation that is
// queued again by that has the fresh token.
func (v *Invocation) Audit(now time.Time, seen Observed, fresh invocation.Token) Decision {
	silentBefore := v.streamEnded
	v.streamEnded = seen.StreamEnded && v.phase == Claimed && !v.begun
	switch {
	case v.streamEnded && silentBefore:
		d, _ := v.Lose(v.attempt, now, fresh, InstanceLost)
		if d.Fail && d.Failure.Cause == CauseGiven {
			d.Failure.Cause = CauseStreamEnded
		}
		return d
	case !v.Due(now, seen.Moved):
		return Decision{}
	case v.phase == Claimed:
		return v.RunTimeout(v.attempt, now)
	case seen.Deleted:
		return v.fail(CauseDeleted)
	case now.After(v.ticket.deadline): // it was claimed then, and given back
		return v.QueueTimeout(now)
	}
	return v.ticket.offer(now)
}
