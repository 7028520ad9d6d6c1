package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Effect is something to do. Its types are below. Those that come with every call and every
// tick are pointers. A HandOut is valid until the next step, a Decided for good.
type Effect interface{ effect() }

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
	// Retire tells an instance to finish what it runs and go.
	Retire struct {
		CID    invocation.CID
		Reason string
	}
	// Dismiss sends an instance to another scheduler.
	Dismiss struct{ CID invocation.CID }
)

// Effects on the instances one level below.
type (
	// Adopt takes over the instances that another scheduler has started.
	Adopt struct{}
	// Release leaves the instances to another scheduler.
	Release struct{}
	// Connected says that an instance's stream counts from now on.
	Connected struct{ CID invocation.CID }
	// LetGo is an instance that was retired and should end. Idle says for how long it was
	// idle, if it was let go for that.
	LetGo struct {
		CID  invocation.CID
		Why  LetGoReason
		Idle time.Duration
	}
)

// LetGoReason is why an instance is let go.
type LetGoReason string

// Reasons to let an instance go.
const (
	BecauseEvicted LetGoReason = "others need its room"
	BecauseNoCall  LetGoReason = "no call is near"
	BecauseTooMany LetGoReason = "there are more than scaling.maxInstances"
	// BecauseOutdated replaces one agent after the other, BecauseUnsupported tells one to
	// go that cannot be talked to.
	BecauseOutdated    LetGoReason = "its agent is of a release that is supported no longer than until it is replaced"
	BecauseUnsupported LetGoReason = "its agent speaks no protocol of this release"

	becauseLetGo    = "it was let go before"
	becauseUnserved = "this scheduler does not own the function's slot"
)

// Effects on the scheduler itself.
type (
	// Wake lets the next tick look at the function.
	Wake struct{}
	// Rest lets ticks pass over the function until something happens, or until then;
	// zero for never.
	Rest struct{ Until time.Time }
	// Hurry asks for a decision before the next tick: at once if Eager, and else if the
	// function has no instance at all.
	Hurry struct{ Eager bool }
	// Decided is what a tick decided; see Ticked.
	Decided struct {
		Observed Observed
		Snapshot autoscaler.Snapshot
		Floor    floor.Floor
		Bounds   autoscaler.Limits
		Decision autoscaler.Decision
	}
	// Mended says how much of what was believed was not so; see ActivityAudited.
	Mended struct{ N int }
)

// Answers to the events of the same names.
type (
	// OfferRefused answers Offered.
	OfferRefused struct{ Why *invocation.Refusal }
	// JoinRefused answers Joined: ErrUnserved, ErrClosed or queue.ErrJoined.
	JoinRefused struct{ Why error }
	// Renewed answers Concluded if an instance was let go for the age of its agent.
	Renewed struct{}
	// PullRefused answers Pulled, with queue.ErrUnknownInstance.
	PullRefused struct{ Why error }
	// LeaveAnswered answers AskedToLeave. Retired says that it was told to go. Err is
	// queue.ErrUnknownInstance or nil.
	LeaveAnswered struct {
		Granted, Retired bool
		AskAgain         time.Duration
		Err              error
	}
)

func (*HandOut) effect()      {}
func (Refuse) effect()        {}
func (Retire) effect()        {}
func (Dismiss) effect()       {}
func (Adopt) effect()         {}
func (Release) effect()       {}
func (Connected) effect()     {}
func (LetGo) effect()         {}
func (Wake) effect()          {}
func (Rest) effect()          {}
func (Hurry) effect()         {}
func (*Decided) effect()      {}
func (Mended) effect()        {}
func (OfferRefused) effect()  {}
func (JoinRefused) effect()   {}
func (Renewed) effect()       {}
func (PullRefused) effect()   {}
func (LeaveAnswered) effect() {}

// AnswerOf is the first of some effects that is a T.
func AnswerOf[T Effect](effects []Effect) (answer T, is bool) {
	for _, e := range effects {
		if answer, is = e.(T); is {
			return answer, true
		}
	}
	return answer, false
}
