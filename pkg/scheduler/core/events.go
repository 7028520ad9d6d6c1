package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Event is something that happened to a function. Its types are below. Those that come with
// every call and every tick are pointers: a step keeps none of them, so that a shell can use
// the same one again.
type Event interface{ isEvent() }

// Events of the function and of its owner.
type (
	// Woken lets the next tick look at the function.
	Woken struct{}
	// SpecChanged brings another spec.
	SpecChanged struct{ Spec Spec }
	// Closed ends everything: the function was deleted, or its scheduler stops.
	Closed struct {
		Reason  string
		Refusal invocation.Refusal
	}
	// OwnershipChanged says in which term the function is served here from now on; Unserved if it
	// is not. Recalled is what another scheduler has learnt of it.
	OwnershipChanged struct {
		Term     invocation.Term
		Restored estimate.Means
	}
	// Paused says that the scheduler stood still. Instances that it lost meanwhile come
	// back, and are no reason to order others.
	Paused struct{}
)

// Events of calls.
type (
	// Offered is a ticket that a gateway offers; OfferRefused or nothing answers it.
	// Barred is why no instance can start, if that is so and there is none. Chance is a
	// random number in [0, 1).
	Offered struct {
		Ticket       invocation.Ticket
		StartBlocked *invocation.Refusal
		Jitter       float64
	}
	// CallCancelled says that nobody wants a call any more.
	CallCancelled struct{ ID invocation.ID }
	// NoRoomFound says that nothing that waits can be served.
	NoRoomFound struct{ Refusal invocation.Refusal }
)

// Events of instances.
type (
	// Joined is an instance that has opened a stream, and is who it says. JoinRefused
	// or nothing answers it. Terminate says that it was told to go before, and Agent whether
	// its agent is understood.
	Joined struct {
		CID      invocation.CID
		Capacity int
		Draining bool
		Agent    Agent
	}
	// Pulled is an instance that asks for Credits more tickets, if Wants, and is done
	// with some. PullRefused or nothing answers it.
	Pulled struct {
		CID     invocation.CID
		Wants   bool
		Credits int
		Done    []Done
	}
	// Started says how long an instance took from its order to its first pull.
	Started struct{ Took time.Duration }
	// LeaveRequested is an instance that was idle for so long; LeaveAnswered answers it.
	// KindStart is what Observed has.
	LeaveRequested struct {
		CID             invocation.CID
		Idle, KindStart time.Duration
	}
	// Left is an instance that will pull no more. Involuntary says that it neither
	// chose to nor was told to.
	Left struct {
		CID         invocation.CID
		Involuntary bool
	}
	// DrainRequested tells an instance to finish what it runs and go.
	DrainRequested struct {
		CID    invocation.CID
		Reason string
	}
	// EvictRequested lets an instance go that was idle for IdleFor, if it still is and may:
	// Terminate answers it.
	EvictRequested struct {
		CID                invocation.CID
		IdleFor, KindStart time.Duration
		Reason             string
	}
	// StartFailed is an instance that did not start. Blameless says that its function
	// has nothing to do with it, Others that there are other instances, and Passing that
	// it may work in a moment. Refusal is for calls if none of that is so.
	StartFailed struct {
		Blameless, OthersExist, Transient bool
		Refusal                           invocation.Refusal
	}
	// AssignFailed is an instance that was to be had from a warm pool, and was not.
	AssignFailed struct{}
	// Ended is an instance that is gone.
	Ended struct{}
)

// Done is a ticket that an instance is done with. Unclaimed says that it could not
// reach the gateway, so that nothing is known of the call. Execution is what the instance
// says that the call took.
type Done struct {
	ID        invocation.ID
	Execution time.Duration
	Unclaimed bool
}

// handle updates the function for an event.
func handle(f *Function, e Event, now time.Time) {
	switch e := e.(type) {
	case Woken:
		f.wake()
	case SpecChanged:
		onSpecChanged(f, e)
	case Closed:
		onClosed(f, e, now)
	case OwnershipChanged:
		onOwnershipChanged(f, e, now)
	case Paused:
		f.lost = 0
	case *Offered:
		onOffered(f, e, now)
	case *CallCancelled:
		onCallCancelled(f, e, now)
	case NoRoomFound:
		onNoRoomFound(f, e, now)
	case Joined:
		onJoined(f, e)
	case *Pulled:
		onPulled(f, e, now)
	case Started:
		onStarted(f, e)
	case LeaveRequested:
		onLeaveRequested(f, e, now)
	case Left:
		onLeft(f, e, now)
	case DrainRequested:
		onDrainRequested(f, e)
	case EvictRequested:
		onEvictRequested(f, e, now)
	case StartFailed:
		onStartFailed(f, e, now)
	case AssignFailed:
		onAssignFailed(f, now)
	case Ended:
		f.wake()
	case *Ticked:
		onTicked(f, e, now)
	case *Applied:
		onApplied(f, e, now)
	case ActivityAudited:
		onActivityAudited(f, e)
	case GatewaysAudited:
		onGatewaysAudited(f, e, now)
	}
}

func (Woken) isEvent()            {}
func (SpecChanged) isEvent()      {}
func (Closed) isEvent()           {}
func (OwnershipChanged) isEvent() {}
func (Paused) isEvent()           {}
func (*Offered) isEvent()         {}
func (*CallCancelled) isEvent()   {}
func (NoRoomFound) isEvent()      {}
func (Joined) isEvent()           {}
func (*Pulled) isEvent()          {}
func (Started) isEvent()          {}
func (LeaveRequested) isEvent()   {}
func (Left) isEvent()             {}
func (DrainRequested) isEvent()   {}
func (EvictRequested) isEvent()   {}
func (StartFailed) isEvent()      {}
func (AssignFailed) isEvent()     {}
func (Ended) isEvent()            {}
func (*Ticked) isEvent()          {}
func (*Applied) isEvent()         {}
func (ActivityAudited) isEvent()  {}
func (GatewaysAudited) isEvent()  {}
