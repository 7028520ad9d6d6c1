package callorder

import "time"

// InstanceID names an instance of the node. Its user chooses it.
type InstanceID uint64

// Event is something that happened. Usage is always the processor time of the instance since
// it started, as the node measured it at that moment.
type Event interface{ isEvent() }

type (
	// Joined says that an instance is there, and runs no call.
	Joined struct {
		Instance            InstanceID
		Namespace, Function string
		Class               Class
		// Slice is after how much processor time its calls lose their tickets, if that is
		// shorter than the node's slice; 0 for the node's.
		Slice time.Duration
		// MustAsk says that its calls ask for tickets, so that it may not compute much without one.
		MustAsk bool
		// Usage is what it has used before. Name tells it from all others also when it comes again, so
		// that this gives it no new allowance; empty for none.
		Usage time.Duration
		Name  string
	}
	// Running says that an instance runs a call that began without asking.
	Running struct {
		Instance InstanceID
		For      time.Duration
		Usage    time.Duration
	}
	// Asked says that an instance has a call that needs a core. Ask comes back with the grant.
	// Waited is how long ago the node's side of the call began: its place in the order.
	Asked struct {
		Instance InstanceID
		Ask      uint64
		Waited   time.Duration
		Usage    time.Duration
	}
	// Ended says that the instance's call ended. Refused says that it never began, though it may have
	// had a ticket: another instance has it. Nothing is learnt from it, unless it
	// computed nevertheless.
	Ended struct {
		Instance InstanceID
		Usage    time.Duration
		Refused  bool
	}
	// GaveUp says that the call that asked does not wait any longer, and has not begun. Its grant may have
	// been on its way: then it is a call that was refused.
	GaveUp struct {
		Instance InstanceID
		Ask      uint64
		Usage    time.Duration
	}
	// Left says that the instance is gone.
	Left struct{ Instance InstanceID }
	// Sampled is the processor time of an instance.
	Sampled struct {
		Instance InstanceID
		Usage    time.Duration
	}
	// Exempted says that the instance need not ask from now on, until the node is busy again or
	// AskAgain.
	Exempted struct{ Instance InstanceID }
	// ModeChanged says that the node is busy: more threads want to run than it has cores; or
	// calm again.
	ModeChanged struct{ Busy bool }
	// CoresChanged says how many cores calls may have from now on; less than 1 counts as 1.
	CoresChanged struct{ Cores int }
	// Occupied says on how many cores latency-critical instances compute. There are no tickets
	// for these until the next one; at least one ticket remains.
	Occupied struct{ Cores int }
)

func (Joined) isEvent()       {}
func (Running) isEvent()      {}
func (Asked) isEvent()        {}
func (Ended) isEvent()        {}
func (GaveUp) isEvent()       {}
func (Left) isEvent()         {}
func (Sampled) isEvent()      {}
func (Exempted) isEvent()     {}
func (ModeChanged) isEvent()  {}
func (CoresChanged) isEvent() {}
func (Occupied) isEvent()     {}

// Effect is something to do.
type Effect interface{ isEffect() }

// Why is why an instance changes its band.
type Why string

// Reasons for a band.
const (
	// WhySlice: its call used up its slice.
	WhySlice Why = "slice"
	// WhyPreempted: a shorter call has its ticket.
	WhyPreempted Why = "preempted"
	// WhyOverload: its call waited too long for a ticket (Params.Bypass).
	WhyOverload Why = "overload"
	// WhyUnasked: it computed too much without a ticket.
	WhyUnasked Why = "unasked"
	// WhyRested: it has computed little for a while.
	WhyRested Why = "rested"
	// WhyBatch: its class is Batch.
	WhyBatch Why = "batch"
	// WhyTicket: its call has a ticket again.
	WhyTicket Why = "ticket"
	// WhyIdleCore: a core is free.
	WhyIdleCore Why = "idle-core"
	// WhyEnded: its call ended.
	WhyEnded Why = "ended"
	// WhyCalm: the node is calm.
	WhyCalm Why = "calm"
)

type (
	// Grant gives a core ticket: the call may begin.
	Grant struct {
		Instance InstanceID
		Ask      uint64
		// Waited is how long the call waited here.
		Waited time.Duration
	}
	// SetBand moves an instance between bands. Every instance begins in the normal band.
	SetBand struct {
		Instance InstanceID
		Low      bool
		Why      Why
	}
	// AskAgain ends an exemption: the instance has to ask for its next calls.
	AskAgain struct{ Instance InstanceID }
)

func (Grant) isEffect()    {}
func (SetBand) isEffect()  {}
func (AskAgain) isEffect() {}
