package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Event is something that happened to a function. Its types are below. Those that come with
// every call and every tick are pointers: a step keeps none of them, so that a shell can use
// the same one again.
type Event interface {
	happen(f *Function, now time.Time)
}

// Events of the function and of its owner.
type (
	// Woken lets the next tick look at the function.
	Woken struct{}
	// Changed brings another spec.
	Changed struct{ Spec Spec }
	// Closed ends everything: the function was deleted, or its scheduler stops.
	Closed struct {
		Reason  string
		Refusal invocation.Refusal
	}
	// Served says in which term the function is served here from now on; Unserved if it
	// is not. Recalled is what another scheduler has learnt of it.
	Served struct {
		Term     invocation.Term
		Recalled estimate.Means
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
		Ticket invocation.Ticket
		Barred *invocation.Refusal
		Chance float64
	}
	// Withdrawn says that nobody wants a call any more.
	Withdrawn struct{ ID invocation.ID }
	// GivenUp says that nothing that waits can be served.
	GivenUp struct{ Refusal invocation.Refusal }
)

// Events of instances.
type (
	// Joined is an instance that has opened a stream, and is who it says. JoinRefused
	// or nothing answers it. LetGo says that it was told to go before, and Agent whether
	// its agent is understood.
	Joined struct {
		CID      invocation.CID
		Capacity int
		LetGo    bool
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
	// AskedToLeave is an instance that was idle for so long; LeaveAnswered answers it.
	// KindStart is what Observed has.
	AskedToLeave struct {
		CID             invocation.CID
		Idle, KindStart time.Duration
	}
	// Departed is an instance that will pull no more. Involuntary says that it neither
	// chose to nor was told to.
	Departed struct {
		CID         invocation.CID
		Involuntary bool
	}
	// Discharged tells an instance to finish what it runs and go.
	Discharged struct {
		CID    invocation.CID
		Reason string
	}
	// Evicted lets an instance go that was idle for IdleFor, if it still is and may:
	// LetGo answers it.
	Evicted struct {
		CID                invocation.CID
		IdleFor, KindStart time.Duration
		Reason             string
	}
	// StartFailed is an instance that did not start. Blameless says that its function
	// has nothing to do with it, Others that there are other instances, and Passing that
	// it may work in a moment. Refusal is for calls if none of that is so.
	StartFailed struct {
		Blameless, Others, Passing bool
		Refusal                    invocation.Refusal
	}
	// Untaken is an instance that was to be had from a warm pool, and was not.
	Untaken struct{}
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
