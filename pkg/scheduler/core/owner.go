package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// serving says whether the function is served here.
type serving struct {
	// term is that in which it is served, and takenOver when that began.
	term      invocation.Term
	takenOver time.Time
	// closed says that the function was deleted, or that its scheduler stops.
	closed bool
}

// served tells whether calls and instances are welcome.
func (t *serving) served() bool { return t.term != Unserved && !t.closed }

func onSpecChanged(f *Function, e SpecChanged) {
	f.spec = e.Spec
	f.floorPolicy = newFloorPolicy(e.Spec, f.floorPolicy)
	f.wake()
}

func onClosed(f *Function, e Closed, now time.Time) {
	f.closed = true
	for _, cid := range f.instances.cids() {
		f.drain(cid, e.Reason)
	}
	f.refuseWaiting(e.Refusal, now)
}

func onOwnershipChanged(f *Function, e OwnershipChanged, now time.Time) {
	switch {
	case e.Term == f.term:
		return
	case e.Term == Unserved:
		f.releaseOwnership(now)
	default:
		f.do(Adopt{})
		f.estimates.executions.Seed(min(e.Restored.Execution, f.spec.Timeout))
		f.estimates.starts.Seed(min(e.Restored.Start, f.spec.StartupTimeout))
		f.takenOver = now
		f.wake()
	}
	f.term = e.Term
}

// releaseOwnership sends the instances to the new owner, leaves them to it, refuses what waits,
// and forgets what was learnt: the new owner knows better when the function comes back.
// Whether it is quiet there is not known here.
func (f *Function) releaseOwnership(now time.Time) {
	for _, cid := range f.instances.cids() {
		f.queue.Leave(cid, now)
		f.do(Redirect{CID: cid})
	}
	clear(f.instances)
	f.do(Release{})
	f.refuseWaiting(NotOwner, now)
	f.idleSince = time.Time{}
	f.lost, f.lastDecision.blocked = 0, false
	f.estimates = newEstimates(f.config)
}

// Term is that in which the function is served; Unserved if it is not.
func (t *serving) Term() invocation.Term { return t.term }

// ServedSince is when the present term began; zero if the function was never served.
func (t *serving) ServedSince() time.Time { return t.takenOver }
