package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Effect is something to do. Its types are below. Those that come with every call and every
// tick are pointers. A HandOut is valid until the next step, a Decided for good.
type Effect interface{ isEffect() }

// Effects that reach gateways and instances.
type (
	// HandOut gives a ticket to an instance that asked for one.
	HandOut struct {
		CID    invocation.CID
		Ticket invocation.Ticket
	}
	// Refuse refuses tickets at the gateways that they came from.
	Refuse struct {
		Tickets []invocation.Ticket
		Why     invocation.Refusal
	}
	// Drain tells an instance to finish what it runs and go.
	Drain struct {
		CID    invocation.CID
		Reason string
	}
	// Redirect sends an instance to another scheduler.
	Redirect struct{ CID invocation.CID }
)

// Effects on the instances one level below.
type (
	// Adopt takes over the instances that another scheduler has started.
	Adopt struct{}
	// Release leaves the instances to another scheduler.
	Release struct{}
	// Connected says that an instance's stream counts from now on.
	Connected struct{ CID invocation.CID }
	// Terminate is an instance that was retired and should end. Idle says for how long it was
	// idle, if it was let go for that.
	Terminate struct {
		CID  invocation.CID
		Why  TerminateReason
		Idle time.Duration
	}
)

// TerminateReason is why an instance is let go.
type TerminateReason string

// Reasons to let an instance go.
const (
	BecauseEvicted TerminateReason = "others need its room"
	BecauseNoCall  TerminateReason = "no call is near"
	BecauseTooMany TerminateReason = "there are more than scaling.maxInstances"
	// BecauseOutdated replaces one agent after the other, BecauseUnsupported tells one to
	// go that cannot be talked to.
	BecauseOutdated    TerminateReason = "its agent is of a release that is supported no longer than until it is replaced"
	BecauseUnsupported TerminateReason = "its agent speaks no protocol of this release"

	becauseDraining = "it was let go before"
	becauseUnserved = "this scheduler does not own the function's slot"
)

// Effects on the scheduler itself.
type (
	// Wake lets the next tick look at the function.
	Wake struct{}
	// Park lets ticks pass over the function until something happens, or until then;
	// zero for never.
	Park struct{ Until time.Time }
	// RunNow asks for a decision before the next tick: at once if Eager, and else if the
	// function has no instance at all.
	RunNow struct{ Always bool }
	// Decided is what a tick decided; see Ticked.
	Decided struct {
		Observed Observed
		Snapshot autoscaler.Snapshot
		Floor    floor.Floor
		Bounds   autoscaler.Limits
		Decision autoscaler.Decision
	}
	// Repaired says how much of what was believed was not so; see ActivityAudited.
	Repaired struct{ N int }
)

// Answers to the events of the same names.
type (
	// OfferRefused answers Offered.
	OfferRefused struct{ Why *invocation.Refusal }
	// JoinRefused answers Joined: ErrUnserved, ErrClosed or queue.ErrJoined.
	JoinRefused struct{ Why error }
	// AgentReplaced answers Concluded if an instance was let go for the age of its agent.
	AgentReplaced struct{}
	// PullRefused answers Pulled, with queue.ErrUnknownInstance.
	PullRefused struct{ Why error }
	// LeaveAnswered answers LeaveRequested. Retired says that it was told to go. Err is
	// queue.ErrUnknownInstance or nil.
	LeaveAnswered struct {
		Granted, Drained bool
		RetryAfter       time.Duration
		Err              error
	}
)

func (*HandOut) isEffect()      {}
func (Refuse) isEffect()        {}
func (Drain) isEffect()         {}
func (Redirect) isEffect()      {}
func (Adopt) isEffect()         {}
func (Release) isEffect()       {}
func (Connected) isEffect()     {}
func (Terminate) isEffect()     {}
func (Wake) isEffect()          {}
func (Park) isEffect()          {}
func (RunNow) isEffect()        {}
func (*Decided) isEffect()      {}
func (Repaired) isEffect()      {}
func (OfferRefused) isEffect()  {}
func (JoinRefused) isEffect()   {}
func (AgentReplaced) isEffect() {}
func (PullRefused) isEffect()   {}
func (LeaveAnswered) isEffect() {}

// AnswerOf is the first of some effects that is a T.
func AnswerOf[T Effect](effects []Effect) (answer T, is bool) {
	for _, e := range effects {
		if answer, is = e.(T); is {
			return answer, true
		}
	}
	return answer, false
}
