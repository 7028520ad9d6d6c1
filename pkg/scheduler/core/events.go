package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// Event is something that happened to a function. The events that come with every call, report
// and tick are pointers. A step keeps none of them, so a shell can reuse them.
type Event interface {
	// apply changes the state by the event.
	apply(f *Function, now time.Time)
}

// Events of the function and of its owner.
type (
	// Woken makes the next tick look at the function.
	Woken struct{}
	// SpecChanged replaces the spec.
	SpecChanged struct{ Spec Spec }
	// Closed drains all instances and refuses all calls: the function was deleted, or the
	// scheduler of local mode stops.
	Closed struct {
		Reason  string
		Refusal invocation.Refusal
	}
	// OwnershipChanged begins Term, or ends the present term if Term is Unserved. Restored are
	// the estimates that the previous owner has measured.
	OwnershipChanged struct {
		Term     invocation.Term
		Restored estimate.Means
	}
	// Paused says that the scheduler's process did not run for a while. Instances that it lost
	// meanwhile connect again and are not replaced.
	Paused struct{}
)

// Events of calls.
type (
	// Offered is a ticket that a gateway offers; OfferRefused answers a refused one. Again says
	// that the gateway has offered the call before, so that a scheduler has admitted it.
	// StartBlocked is set if the function has no instance and none can start. Jitter is a
	// random number in [0, 1).
	Offered struct {
		Ticket       invocation.Ticket
		Again        bool
		StartBlocked *invocation.Refusal
		Jitter       float64
	}
	// CallCancelled says that a call's gateway no longer wants it to run.
	CallCancelled struct{ ID invocation.ID }
	// NoRoomFound refuses all waiting calls, because no instance can be placed for them.
	NoRoomFound struct{ Refusal invocation.Refusal }
)

// Events of instances.
type (
	// Joined is an authenticated instance that has opened a stream; JoinRefused answers a
	// refused one. Draining says that the instance was asked to leave before, and Agent
	// whether this release supports its agent.
	Joined struct {
		CID      invocation.CID
		Capacity int
		Draining bool
		Agent    Agent
	}
	// Pulled is an instance that asks for Credits more tickets and says which places it has
	// lent, if Wants is set, and reports the tickets that it is done with. Loans are all its
	// loans. Idle is for how long an instance with loans has run nothing; 0 if it runs a call,
	// or has until a moment ago. PullRefused answers an unknown instance. The step keeps
	// neither slice.
	Pulled struct {
		CID     invocation.CID
		Wants   bool
		Credits int
		Done    []Done
		Loans   []queue.Loan
		Idle    time.Duration
		// NodeBusy says that more threads want to run on its node than there are cores, and
		// AwaitsCore that a call has waited there for one for invocation.LongCoreWait, or has
		// been in the low band for as long. The call is that of the ticket Awaits; if that is zero, one
		// that has begun or came by a loan.
		NodeBusy, AwaitsCore bool
		Awaits               invocation.ID
	}
	// Started says how long an instance took from its launch to its first pull.
	Started struct{ Took time.Duration }
	// LeaveRequested is an instance that has been idle for Idle and asks to leave;
	// LeaveAnswered answers it. KindStart is as in Observed.
	LeaveRequested struct {
		CID             invocation.CID
		Idle, KindStart time.Duration
	}
	// Left is an instance whose stream has ended for good. Involuntary says that the instance
	// neither chose to leave nor was asked to.
	Left struct {
		CID         invocation.CID
		Involuntary bool
	}
	// DrainRequested asks an instance to finish its calls and leave.
	DrainRequested struct {
		CID    invocation.CID
		Reason string
	}
	// EvictRequested evicts an instance if it has been idle for IdleFor and still may be
	// evicted. Terminate answers it on success.
	EvictRequested struct {
		CID                invocation.CID
		IdleFor, KindStart time.Duration
		Reason             string
	}
	// StartFailed is an instance that did not start. Blameless says that the function did not
	// cause the failure, OthersExist that the function has other instances, and Transient that
	// another try may succeed. If none is set, waiting calls are refused with Refusal.
	StartFailed struct {
		Blameless, OthersExist, Transient bool
		Refusal                           invocation.Refusal
	}
	// AssignFailed is a spare instance that could not be assigned to the function.
	AssignFailed struct{ CID invocation.CID }
	// InstanceEnded is an instance whose processes have ended. It wakes the function, and changes
	// what others could evict.
	InstanceEnded struct{}
)

// Done is a ticket that an instance is done with. Unclaimed says that the instance could not
// reach the gateway, so that the state of the call is unknown. Execution is the execution time
// as reported by the agent. CoreWait is how long the call waited for a core before, as far as no
// Pulled said so.
type Done struct {
	ID                  invocation.ID
	Execution, CoreWait time.Duration
	Unclaimed           bool
}

func (Woken) apply(f *Function, _ time.Time) { f.wake() }

func (Paused) apply(f *Function, _ time.Time) { f.lost = nil }

func (InstanceEnded) apply(f *Function, _ time.Time) { f.wake() }
