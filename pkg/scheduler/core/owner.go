package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// tenure says whether the function is served here.
type tenure struct {
	// term is that in which it is served, and takenOver when that began.
	term      invocation.Term
	takenOver time.Time
	// closed says that the function was deleted, or that its scheduler stops.
	closed bool
}

// served tells whether calls and instances are welcome.
func (t *tenure) served() bool { return t.term != Unserved && !t.closed }

func (Woken) happen(f *Function, _ time.Time) { f.wake() }

func (Paused) happen(f *Function, _ time.Time) { f.lost = 0 }

func (e Changed) happen(f *Function, _ time.Time) {
	f.spec = e.Spec
	f.floorPolicy = newFloorPolicy(e.Spec, f.floorPolicy)
	f.wake()
}

func (e Closed) happen(f *Function, now time.Time) {
	f.closed = true
	for _, cid := range f.instances.cids() {
		f.retire(cid, e.Reason)
	}
	f.refuse(e.Refusal, now)
}

func (e Served) happen(f *Function, now time.Time) {
	switch {
	case e.Term == f.term:
		return
	case e.Term == Unserved:
		f.disown(now)
	default:
		f.do(Adopt{})
		f.learnt.executions.Seed(min(e.Recalled.Execution, f.spec.Timeout))
		f.learnt.starts.Seed(min(e.Recalled.Start, f.spec.StartupTimeout))
		f.takenOver = now
		f.wake()
	}
	f.term = e.Term
}

// disown sends the instances to the new owner, leaves them to it, refuses what waits,
// and forgets what was learnt: the new owner knows better when the function comes back.
// Whether it is quiet there is not known here.
func (f *Function) disown(now time.Time) {
	for _, cid := range f.instances.cids() {
		f.queue.Leave(cid, now)
		f.do(Dismiss{CID: cid})
	}
	clear(f.instances)
	f.do(Release{})
	f.refuse(NotOwner, now)
	f.quietSince = time.Time{}
	f.lost, f.lastDecision.blocked = 0, false
	f.learnt = newLearnt(f.config)
}

// Term is that in which the function is served; Unserved if it is not.
func (t *tenure) Term() invocation.Term { return t.term }

// ServedSince is when the present term began; zero if the function was never served.
func (t *tenure) ServedSince() time.Time { return t.takenOver }
