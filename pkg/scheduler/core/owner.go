package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// serving says whether this scheduler serves the function.
type serving struct {
	// term is the present term, and takenOver when it began.
	term      invocation.Term
	takenOver time.Time
	// before is how many calls had come when the term before ended.
	before uint64
	// closed says that the function was deleted, or that the scheduler of local mode stops.
	closed bool
}

// served reports whether the function accepts calls and instances.
func (t *serving) served() bool { return t.term != Unserved && !t.closed }

func (e SpecChanged) apply(f *Function, _ time.Time) {
	f.spec = e.Spec
	f.floorPolicy = newFloorPolicy(e.Spec, f.floorPolicy)
	f.wake()
}

func (e Closed) apply(f *Function, now time.Time) {
	f.closed = true
	for _, cid := range f.instances.cids() {
		f.drain(Drain{CID: cid, Reason: e.Reason})
	}
	f.reports.dropAll()
	f.refuseWaiting(e.Refusal, now)
}

func (e OwnershipChanged) apply(f *Function, now time.Time) {
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

// releaseOwnership redirects the instances to the new owner, refuses the waiting tickets and
// drops the estimates. When the function comes back, the new owner's estimates are better, and
// whether it was idle meanwhile is unknown. Its idle times stay: no owner hands them over.
func (f *Function) releaseOwnership(now time.Time) {
	for _, cid := range f.instances.cids() {
		f.queue.Leave(cid, now)
		f.do(Redirect{CID: cid})
	}
	clear(f.instances)
	f.reports.dropAll()
	f.do(Release{})
	f.refuseWaiting(NotOwner, now)
	f.idleSince, f.before = time.Time{}, f.arrived()
	f.lost, f.last, f.degraded, f.coreWaited = nil, lastDecision{}, degradedMode{}, 0
	f.estimates = newEstimates(f.config)
}
