package core

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

var (
	// ErrUnserved says that the function is served elsewhere.
	ErrUnserved = errors.New("core: the function is served elsewhere")
	// ErrClosed says that the function is gone.
	ErrClosed = errors.New("core: the function is gone")
)

// instances are those that have joined.
type instances map[invocation.CID]*instance

type instance struct {
	agent   Agent
	retired bool
}

// cids are the instances in order.
func (s instances) cids() []invocation.CID { return slices.Sorted(maps.Keys(s)) }

func (s instances) retired(cid invocation.CID) bool {
	in := s[cid]
	return in != nil && in.retired
}

func (e Joined) happen(f *Function, _ time.Time) {
	switch {
	case f.closed:
		f.do(JoinRefused{Why: ErrClosed})
		return
	case f.term == Unserved:
		f.do(JoinRefused{Why: ErrUnserved})
		return
	}
	if err := f.queue.Join(e.CID, e.Capacity); err != nil {
		f.do(JoinRefused{Why: err})
		return
	}
	f.instances[e.CID] = &instance{agent: e.Agent}
	f.do(Connected{CID: e.CID})
	switch {
	case e.Agent == AgentUnsupported:
		f.retire(e.CID, string(BecauseUnsupported))
		f.do(LetGo{CID: e.CID, Why: BecauseUnsupported})
	case e.LetGo:
		f.retire(e.CID, becauseLetGo)
	}
	f.wake() // it may be one too many
}

// retire lets an instance finish what it holds and tells it to go.
func (f *Function) retire(cid invocation.CID, reason string) {
	if f.queue.Drain(cid) {
		f.retired(cid, reason)
	}
}

// retired tells an instance that the queue has retired it.
func (f *Function) retired(cid invocation.CID, reason string) {
	f.instances[cid].retired = true
	f.do(Retire{CID: cid, Reason: reason})
}

func (e Discharged) happen(f *Function, _ time.Time) { f.retire(e.CID, e.Reason) }

// A ticket whose gateway the instance could not reach goes to another one.
func (e *Pulled) happen(f *Function, now time.Time) {
	done, back := false, false
	for _, d := range e.Done {
		// It comes from an agent, so it is held within what the timeout allows.
		f.learnt.executions.Observe(min(d.Execution, f.spec.Timeout))
		if d.Unclaimed {
			f.queue.Requeue(e.CID, d.ID, now)
			back = true
		} else {
			f.queue.Done(e.CID, d.ID)
			done = true
		}
	}
	if e.Wants {
		if err := f.queue.Pull(e.CID, e.Credits, now); err != nil {
			f.do(PullRefused{Why: err})
		}
	}
	f.match(now)
	switch {
	case back && f.queue.Waiting() > 0:
		f.wake() // a tick hands it out when this instance may have it again, or orders another
	case done && f.floorPolicy.Patterned() && !f.quietSince.IsZero():
		f.wake() // which plans what to keep from now on
	}
}

func (e Started) happen(f *Function, _ time.Time) {
	if took := min(e.Took, f.spec.StartupTimeout); took > 0 {
		f.learnt.starts.Observe(took)
	}
	f.wake()
}

func (e AskedToLeave) happen(f *Function, now time.Time) {
	policy := f.spec.leavePolicy(f.Floor(now, e.KindStart), e.Idle, now)
	answer, err := f.queue.RequestLeave(e.CID, e.Idle, policy)
	retired := f.instances.retired(e.CID)
	if answer.Granted {
		delete(f.instances, e.CID)
	}
	f.do(LeaveAnswered{Granted: answer.Granted, Retired: retired, AskAgain: answer.RetryAfter, Err: err})
}

// An instance that held calls was needed, and is replaced if it went neither by choice
// nor because it was told to.
func (e Departed) happen(f *Function, now time.Time) {
	in := f.instances[e.CID]
	if in == nil {
		f.wake()
		return
	}
	held := f.queue.Leave(e.CID, now)
	delete(f.instances, e.CID)
	if held > 0 && e.Involuntary && !in.retired {
		f.lost++
	}
	f.match(now)
	f.wake()
}

// Retired tells whether an instance that has joined was told to go.
func (f *Function) Retired(cid invocation.CID) bool { return f.instances.retired(cid) }

func (e Evicted) happen(f *Function, now time.Time) {
	policy := f.EvictPolicy(now, e.IdleFor, e.KindStart)
	f.letIdleGo(queue.IdleInstance{CID: e.CID, Idle: e.IdleFor}, policy, BecauseEvicted, e.Reason, now)
}

// letIdleGo lets an idle instance go if the policy allows it still.
func (f *Function) letIdleGo(idle queue.IdleInstance, policy queue.EvictPolicy, why LetGoReason, reason string, now time.Time) {
	if f.queue.Evict(idle.CID, now, policy) {
		f.retired(idle.CID, reason)
		f.do(LetGo{CID: idle.CID, Why: why, Idle: idle.Idle})
	}
}

func (e StartFailed) happen(f *Function, now time.Time) {
	switch {
	case e.Blameless:
		f.wake() // what waits goes on waiting, and the next tick tries again
	case e.Others, e.Passing:
	default:
		f.refuse(e.Refusal, now)
	}
}

// It is as good as lost, and ordered again.
func (Untaken) happen(f *Function, now time.Time) {
	if f.served() {
		f.lost++
	}
	f.wake()
	f.hurry(now)
}

func (Ended) happen(f *Function, _ time.Time) { f.wake() }
