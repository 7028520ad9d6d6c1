package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/floor"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// Effect is an action that a step asks its caller to carry out. The effects that come with
// every call, report and tick are pointers. A HandOut and a RanByLoan are valid until the next
// step, a Decided without limit.
type Effect interface{ isEffect() }

// Effects that reach gateways and instances.
type (
	// HandOut hands a ticket to an instance that asked for one. Lent says that the instance
	// keeps the call's place for further calls of the same gateway. Rebound says that another one,
	// which waits for a core, has the ticket too: the gateway refuses one of the two.
	HandOut struct {
		CID    invocation.CID
		Ticket invocation.Ticket

		Lent, Rebound bool
	}
	// Recall takes Calls places back that an instance has lent to a gateway.
	Recall queue.Recall
	// Refuse refuses tickets at the gateways that they came from.
	Refuse struct {
		Tickets []invocation.Ticket
		Why     invocation.Refusal
	}
	// Drain asks an instance to finish its calls and leave. Unsupported says that this release
	// does not speak its agent's protocol, or that the next will not. Reason is for people.
	Drain struct {
		CID         invocation.CID
		Reason      string
		Unsupported bool
	}
	// Redirect sends an instance to the scheduler that serves the function now.
	Redirect struct{ CID invocation.CID }
)

// Effects on the instances one level below.
type (
	// Adopt takes over the instances that another scheduler has launched.
	Adopt struct{}
	// Release leaves the instances to another scheduler.
	Release struct{}
	// Connect records the stream of an instance that has joined.
	Connect struct{ CID invocation.CID }
	// Terminate ends an instance that has been drained. Idle is for how long it was idle, if
	// that is the reason.
	Terminate struct {
		CID  invocation.CID
		Why  TerminateReason
		Idle time.Duration
	}
)

// TerminateReason is why an instance is terminated.
type TerminateReason string

// Reasons to terminate an instance.
const (
	BecauseEvicted TerminateReason = "evicted for another function"
	BecauseNoCall  TerminateReason = "no call is expected"
	BecauseTooMany TerminateReason = "there are more than scaling.maxInstances"
	// BecauseOutdated replaces agents one after the other. BecauseUnsupported terminates an
	// instance whose agent shares no protocol with this release.
	BecauseOutdated    TerminateReason = "its agent is of a release whose support ends"
	BecauseUnsupported TerminateReason = "its agent has no protocol in common with this release"

	becauseDraining = "it was draining already"
	becauseUnserved = "this scheduler does not own the function's slot"
)

// Effects on the scheduler itself.
type (
	// Wake makes the next tick look at the function.
	Wake struct{}
	// Park makes ticks pass over the function until an event wakes it, or until Until; zero
	// means no time limit.
	Park struct{ Until time.Time }
	// RunNow asks for a decision before the next tick: always if Always is set, and otherwise
	// only if the function has no instance.
	RunNow struct{ Always bool }
	// Decided is the decision of a tick, with its inputs; see Ticked.
	Decided struct {
		Observed Observed
		Snapshot autoscaler.Snapshot
		Floor    floor.Floor
		Bounds   autoscaler.Limits
		Decision autoscaler.Decision
	}
	// Repaired says how many differences an audit has repaired; see ActivityAudited.
	Repaired struct{ N int }
)

// Answers to the events of the same names.
type (
	// OfferRefused answers Offered.
	OfferRefused struct{ Why *invocation.Refusal }
	// JoinRefused answers Joined with ErrUnserved, ErrClosed or queue.ErrJoined.
	JoinRefused struct{ Why error }
	// RanByLoan answers Reported: that many calls have run by loans, in Mean on average, which
	// is at most the function's timeout.
	RanByLoan struct {
		Calls uint64
		Mean  time.Duration
	}
	// AgentReplaced answers Applied if an instance was drained because its agent is outdated.
	AgentReplaced struct{}
	// PullRefused answers Pulled with queue.ErrUnknownInstance.
	PullRefused struct{ Why error }
	// LeaveAnswered answers LeaveRequested. Drained says that the instance was asked to leave
	// before. Err is queue.ErrUnknownInstance or nil.
	LeaveAnswered struct {
		Granted, Drained bool
		RetryAfter       time.Duration
		Err              error
	}
)

func (*HandOut) isEffect()      {}
func (Recall) isEffect()        {}
func (Refuse) isEffect()        {}
func (Drain) isEffect()         {}
func (Redirect) isEffect()      {}
func (Adopt) isEffect()         {}
func (Release) isEffect()       {}
func (Connect) isEffect()       {}
func (Terminate) isEffect()     {}
func (Wake) isEffect()          {}
func (Park) isEffect()          {}
func (RunNow) isEffect()        {}
func (*Decided) isEffect()      {}
func (Repaired) isEffect()      {}
func (OfferRefused) isEffect()  {}
func (*RanByLoan) isEffect()    {}
func (JoinRefused) isEffect()   {}
func (AgentReplaced) isEffect() {}
func (PullRefused) isEffect()   {}
func (LeaveAnswered) isEffect() {}

// AnswerOf returns the first effect of type T.
func AnswerOf[T Effect](effects []Effect) (answer T, is bool) {
	for _, e := range effects {
		if answer, is = e.(T); is {
			return answer, true
		}
	}
	return answer, false
}
