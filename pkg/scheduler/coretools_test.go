package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// waitingTickets is how many tickets wait.
func (u *unit) waitingTickets() int { return u.view(time.Now()).Waiting }

// observed lets a function learn from an execution.
func (s *Scheduler) observed(f *unit, execution time.Duration) {
	s.shell.step(f, core.Joined{CID: "other", Capacity: 1})
	s.shell.step(f, &core.Pulled{CID: "other", Done: []core.Done{{Execution: execution}}})
	s.shell.step(f, core.Left{CID: "other"})
}

// learnStart lets a function learn from a start.
func (s *Scheduler) learnStart(f *unit, took time.Duration) {
	fn := f.fn()
	s.shell.starts.observe(kindOf(fn), min(took, fn.Spec.Template.StartupTimeout.Duration))
	s.shell.step(f, core.Started{Took: took})
}

// meanStart is how long an instance of a function is believed to take to start.
func (s *Scheduler) meanStart(f *unit) time.Duration {
	s.shell.syncOwnership(f)
	d, _ := stepFor[*core.Decided](s.shell, f, &core.Ticked{Observed: core.Observed{Room: -1, KindStart: s.shell.starts.mean(kindOf(f.fn()))}})
	return d.Snapshot.MeanStart
}

// calledEvery lets a function be called n times until now, each time after so long without
// a call.
func (s *Scheduler) calledEvery(f *unit, n int, idle func(i int) time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := s.shell.deps.Now()
	for i := range n {
		at = at.Add(-idle(i))
	}
	for i := range n + 1 {
		id := invocation.ID{15: byte(i), 14: 0xff}
		f.core.Step(at, &core.Offered{Ticket: invocation.Ticket{ID: id, Arrived: at, Deadline: at.Add(time.Hour)}})
		f.core.Step(at, &core.CallCancelled{ID: id})
		s.shell.units.activate(f) // since nothing was carried out
		if i < n {
			at = at.Add(idle(i))
		}
	}
	s.shell.markDirty(f)
}

// deaf is a stream of an instance that hears nothing, not even its end.
type deaf struct{}

func (deaf) End(error) {}

// joinDeaf lets an instance join that hears nothing.
func (s *Scheduler) joinDeaf(f *unit, cid invocation.CID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &pullStream{unit: f}
	p.prepare(s.shell, keyOf(f.uid, cid), agentInfo{}, deaf{}, 0)
	f.streams.replace(cid, p)
	s.shell.stepLocked(f, core.Joined{CID: cid, Capacity: 1})
}

// refuseWaiting empties a queue.
func (s *Scheduler) refuseWaiting(f *unit) {
	s.shell.step(f, core.NoRoomFound{Refusal: invocation.Refusal{Reason: invocation.RefusedNoCapacity}})
}

// unwanted is a decision to cancel instances.
func unwanted(n int, why autoscaler.Reason) *core.Decided {
	return &core.Decided{Decision: autoscaler.Decision{Cancel: n, Why: why}}
}

func (u *unit) cancelled(s *Scheduler, id invocation.ID) {
	s.shell.step(u, &core.CallCancelled{ID: id})
}
