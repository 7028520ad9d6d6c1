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
	// ErrUnserved says that another scheduler serves the function.
	ErrUnserved = errors.New("core: the function is served elsewhere")
	// ErrClosed says that the function was deleted, or that the scheduler of local mode stops.
	ErrClosed = errors.New("core: the function is gone")
)

// instances are the agents of the joined instances.
type instances map[invocation.CID]Agent

// cids returns the instances in order of their CIDs.
func (s instances) cids() []invocation.CID { return slices.Sorted(maps.Keys(s)) }

func (e Joined) apply(f *Function, _ time.Time) {
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
	if f.instances == nil {
		f.instances = make(instances)
	}
	f.instances[e.CID] = e.Agent
	f.lost = slices.DeleteFunc(f.lost, func(cid invocation.CID) bool { return cid == e.CID })
	f.do(Connect{CID: e.CID})
	switch unsupported := e.Agent == AgentUnsupported; {
	case e.Draining: // and so terminated already
		f.drain(Drain{CID: e.CID, Reason: becauseDraining, Unsupported: unsupported})
	case unsupported:
		f.drain(Drain{CID: e.CID, Reason: string(BecauseUnsupported), Unsupported: true})
		f.do(Terminate{CID: e.CID, Why: BecauseUnsupported})
	}
	f.wake() // there may be too many instances now
}

// drain lets an instance finish its calls and asks it to leave.
func (f *Function) drain(d Drain) {
	if f.queue.Drain(d.CID) {
		f.do(d)
	}
}

func (e DrainRequested) apply(f *Function, _ time.Time) {
	f.drain(Drain{CID: e.CID, Reason: e.Reason})
}

// A ticket whose gateway the instance could not reach goes to another instance.
func (e *Pulled) apply(f *Function, now time.Time) {
	done, back := false, false
	_, joined := f.instances[e.CID]
	for _, d := range e.Done {
		if joined { // otherwise the next owner measures
			// The agent supplies this value, so it is bounded by the timeout.
			f.estimates.executions.Observe(min(d.Execution, f.spec.Timeout))
			f.coreWaited += invocation.ShortCoreWait(d.CoreWait)
		}
		if d.Unclaimed {
			f.queue.Requeue(e.CID, d.ID, now)
			back = true
		} else {
			f.queue.Done(e.CID, d.ID)
			done = true
		}
	}
	pull := queue.Pull{Credits: e.Credits, Loans: e.Loans, Idle: e.Idle, NodeBusy: e.NodeBusy, AwaitsCore: e.AwaitsCore, Awaits: e.Awaits}
	if e.Wants {
		if err := f.queue.Pull(e.CID, pull, now); err != nil {
			f.do(PullRefused{Why: err})
		}
	}
	f.match(now)
	// With calls.maxInFlight no call is bound late, because the queue counts it at its last holder only:
	// when that gives the ticket back, the first one may run it.
	if f.spec.Calls.Concurrency == 0 {
		f.queue.BindLate(e.CID, pull, now, f.spec.lends(), f.handOutAgain, f.reports.unused, f.recall)
	}
	switch {
	case back && f.queue.Waiting() > 0:
		f.wake() // a tick hands it out after the cool-down, or launches another instance
	case (done || e.Idle > 0) && f.floorPolicy.Patterned() && !f.idleSince.IsZero():
		f.wake() // the next tick plans how long to keep the instance
	}
}

func (e Started) apply(f *Function, _ time.Time) {
	if took := min(e.Took, f.spec.StartupTimeout); took > 0 {
		f.estimates.starts.Observe(took)
	}
	f.wake()
}

func (e LeaveRequested) apply(f *Function, now time.Time) {
	policy := f.spec.leavePolicy(f.floor(now, e.KindStart), e.Idle, now)
	draining := f.Draining(e.CID)
	answer, err := f.queue.RequestLeave(e.CID, e.Idle, policy)
	if answer.Granted {
		delete(f.instances, e.CID)
	}
	f.do(LeaveAnswered{Granted: answer.Granted, Drained: draining, RetryAfter: answer.RetryAfter, Err: err})
}

// An instance that held calls was needed. It is replaced unless it chose to leave or was asked
// to.
func (e Left) apply(f *Function, now time.Time) {
	if _, joined := f.instances[e.CID]; !joined {
		f.wake()
		return
	}
	draining := f.Draining(e.CID)
	held := f.queue.Leave(e.CID, now)
	delete(f.instances, e.CID)
	if held > 0 && e.Involuntary && !draining {
		f.lost = append(f.lost, e.CID)
	}
	f.match(now)
	f.wake()
}

// Draining reports whether a joined instance was asked to leave.
func (f *Function) Draining(cid invocation.CID) bool { return f.queue.Draining(cid) }

func (e EvictRequested) apply(f *Function, now time.Time) {
	policy := f.evictPolicy(now, e.IdleFor, e.KindStart)
	f.terminateIdle(queue.IdleInstance{CID: e.CID, Idle: e.IdleFor}, policy, BecauseEvicted, e.Reason, now)
}

// terminateIdle drains and terminates an idle instance if the policy still allows it.
func (f *Function) terminateIdle(idle queue.IdleInstance, policy queue.EvictPolicy, why TerminateReason, reason string, now time.Time) {
	if f.queue.Evict(idle.CID, now, policy) {
		f.do(Drain{CID: idle.CID, Reason: reason})
		f.do(Terminate{CID: idle.CID, Why: why, Idle: idle.Idle})
	}
}

func (e StartFailed) apply(f *Function, now time.Time) {
	switch {
	case e.Blameless:
		f.wake() // the calls keep waiting, and the next tick tries again
	case e.OthersExist, e.Transient:
	default:
		f.refuseWaiting(e.Refusal, now)
	}
}

// The spare instance counts as lost if a call still waits for one, so the next decision launches
// another.
func (e AssignFailed) apply(f *Function, now time.Time) {
	if f.served() && f.Waiting() > len(f.lost) {
		f.lost = append(f.lost, e.CID)
	}
	f.wake()
	f.requestRun(now)
}

// Agent says whether this release supports the agent of an instance.
type Agent int

const (
	// AgentCurrent is an agent that stays.
	AgentCurrent Agent = iota
	// AgentOutdated is an agent that is still supported: its instance is replaced in its turn.
	AgentOutdated
	// AgentUnsupported shares no protocol with this release: its instance finishes its calls
	// and leaves.
	AgentUnsupported
)

// replaceOutdated drains one instance with an outdated agent, if it may. It runs only while no
// call waits and no instance is starting, so that instances are replaced one by one. It
// returns until when the function may be parked: until itself, or an earlier time to try
// again.
func (f *Function) replaceOutdated(may bool, until, now time.Time) time.Time {
	oldest := f.outdated()
	if oldest == "" {
		return until
	}
	if may && f.queue.Drain(oldest) {
		f.do(Drain{CID: oldest, Reason: string(BecauseOutdated), Unsupported: true})
		f.do(Terminate{CID: oldest, Why: BecauseOutdated})
		f.do(AgentReplaced{})
	}
	if look := now.Add(ReplaceAgentRetry); until.IsZero() || look.Before(until) {
		return look
	}
	return until
}

// outdated returns the oldest instance with an outdated agent that does not drain yet; empty
// if there is none.
func (f *Function) outdated() (oldest invocation.CID) {
	for cid, agent := range f.instances {
		if agent == AgentOutdated && !f.Draining(cid) && (oldest == "" || cid < oldest) {
			oldest = cid
		}
	}
	return oldest
}
