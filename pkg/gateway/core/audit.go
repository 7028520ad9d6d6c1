package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// silentFor is how long an attempt must have ended at its instance, without a word of the answer, until
// it counts as lost. Its end is seen a moment before what it ended with. The next of the
// audits that come every ReofferEvery is never too early.
const silentFor = ReofferEvery / 2

// Observed is the state of an invocation one level below: of its function, of the scheduler
// that has its ticket, and of the instance that has the call.
type Observed struct {
	// Deleted says that its function is gone.
	Deleted bool
	// Moved says that its last ticket went to a scheduler that does not serve the
	// function any more, or by a stream that has ended since.
	Moved bool
	// Ended says that its attempt has ended at its instance, or that the instance is gone.
	Ended bool
}

// Due reports whether an audit may find something if Ended is false: an unclaimed
// invocation has waited for so long that its ticket may be lost, or moved says that it is, or
// its instance should have ended.
func (v *Invocation) Due(now time.Time, moved bool) bool {
	switch v.phase {
	case Queued:
		return v.ticket.due(now, moved)
	case Claimed:
		return !now.Before(v.current.runBy)
	}
	return false
}

// Audit compares the recorded state of an invocation with the observed one, and repairs the
// effect of a lost event. It sends a ticket again that no queue has, and for the first time if
// its Pool has not done so within ReofferAfter. It ends the wait for a
// function that was deleted, for an instance beyond its deadline, and for an instance whose
// attempt ended before an answer began. Audits in a row must find the last case, over silentFor,
// because one alone may run just before the event. If it queues the invocation again, that gets
// the fresh token.
func (v *Invocation) Audit(now time.Time, seen Observed, fresh invocation.Token) Decision {
	switch silent := seen.Ended && v.phase == Claimed && !v.current.begun; {
	case !silent:
		v.current.silentSince = time.Time{}
	case v.current.silentSince.IsZero():
		v.current.silentSince = now
	}
	switch {
	case !v.current.silentSince.IsZero() && now.Sub(v.current.silentSince) >= silentFor:
		d, _ := v.Lose(v.current.number, now, fresh, InstanceLost)
		if d.Fail && d.Failure.Cause == CauseGiven {
			d.Failure.Cause = CauseLost
		}
		return d
	case !v.Due(now, seen.Moved):
		return Decision{}
	case v.phase == Claimed:
		return v.RunTimeout(v.current.number, now)
	case seen.Deleted:
		return v.fail(CauseDeleted)
	case now.After(v.ticket.deadline): // it was claimed then, and given back
		return v.QueueTimeout(now)
	}
	return v.ticket.offer(now)
}
