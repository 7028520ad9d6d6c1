package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Effect is something to do.
type Effect interface{ effect() }

// Dial is to connect to a scheduler and open a stream, without waiting for one that
// refuses. It is answered by Opened or Lost.
type Dial struct {
	Session Session
	// Addr is host:port; empty for any scheduler.
	Addr string
}

// Send is to say something on a session's stream.
type Send struct {
	Session Session
	Message Message
}

// HangUp is to end the stream behind all that was said on it.
type HangUp struct{ Session Session }

// Drop is to break off a dial or a stream, about which no more is to be told.
type Drop struct{ Session Session }

// Message is what an agent may say to a scheduler.
type Message interface{ message() }

// Hello is the first message of a stream.
type Hello struct {
	// Spare says that the instance is of no function so far.
	Spare bool
	// Age is how long ago the instance began or, if it was a spare one, was
	// assigned, and ReadyAfter how long after that its function was ready; 0 if
	// it is not ready yet. Both are 0 once a scheduler has accepted a hello.
	Age, ReadyAfter time.Duration
}

// Pull asks for tickets and gives back what is done.
type Pull struct {
	// Credits is how many more tickets can be taken, at least 0.
	Credits int
	Done    []Done
}

// Done gives back a ticket.
type Done struct {
	ID invocation.ID
	// Exec is how long the function took; 0 if it did not run.
	Exec time.Duration
	// Unclaimed says that the ticket's gateway could not be reached.
	Unclaimed bool
}

// LeaveRequest asks to leave.
type LeaveRequest struct{ Idle time.Duration }

// Goodbye says that the instance leaves.
type Goodbye struct {
	Reason Reason
	Detail string
}

// Ping asks whether the scheduler is there.
type Ping struct {
	// Every is how soon the next one follows at the latest.
	Every  time.Duration
	Report Report
}

// Reason is why an instance is given up.
type Reason int

const (
	// ReasonDone says that it was told to go, or that nobody wants it.
	ReasonDone Reason = iota
	// ReasonStartFailed says that the function will never be ready.
	ReasonStartFailed
	// ReasonStartTimedOut says that the function was not ready in time.
	ReasonStartTimedOut
	// ReasonFunctionEnded says that the function takes no calls any more.
	ReasonFunctionEnded
	// ReasonCallBroken says that it is unknown what the function still does.
	ReasonCallBroken
	// ReasonStopped says that the agent was told to stop.
	ReasonStopped
	// ReasonUnsupported says that the agent does not speak the scheduler's protocol.
	ReasonUnsupported
)

// Assume is to be the instance of the function whose Assignment was heard, in all that
// is said from now on, and to have the runtime load it. It is answered by FunctionReady
// or FunctionFailed.
type Assume struct{}

// Claim is to claim a call at its gateway. It is answered by Granted, Refused or
// Unreachable.
type Claim struct {
	Attempt Attempt
	Ticket  invocation.Ticket
}

// Start is to hand a call to the function. It is answered by CallEnded, and behind it
// by Delivered.
type Start struct {
	Attempt Attempt
	// Unclaimed says that there was no claim: it goes with the result.
	Unclaimed bool
	Ticket    invocation.Ticket
}

// Release is to tell the gateway that a claim, granted or not, will not be used. It
// is answered by Delivered.
type Release struct{ Attempt Attempt }

// Cancel is to let the function see that nobody waits for its answer. The call is
// still answered by CallEnded.
type Cancel struct{ Attempt Attempt }

// Cut is to end a call whose function has ended: there will be no answer. It is still
// answered by CallEnded.
type Cut struct{ Attempt Attempt }

// Quiet is to close what is not used and to give memory back.
type Quiet struct{}

// Observe is to look what is really there. It is answered by Audit.
type Observe struct{}

// WakeAt is to bring about a Wake at a time, instead of at the one before.
type WakeAt struct{ Time time.Time }

// GaveUp tells that the instance takes no more tickets, and why.
type GaveUp struct {
	Reason Reason
	Detail string
}

// Drained tells that no call runs any more, nor will one.
type Drained struct{}

// End tells that there is nothing more to do. No effect follows it.
type End struct{}

func (Dial) effect()    {}
func (Send) effect()    {}
func (HangUp) effect()  {}
func (Drop) effect()    {}
func (Assume) effect()  {}
func (Claim) effect()   {}
func (Start) effect()   {}
func (Release) effect() {}
func (Cancel) effect()  {}
func (Cut) effect()     {}
func (Quiet) effect()   {}
func (Observe) effect() {}
func (WakeAt) effect()  {}
func (GaveUp) effect()  {}
func (Drained) effect() {}
func (End) effect()     {}

func (Hello) message()        {}
func (Pull) message()         {}
func (LeaveRequest) message() {}
func (Goodbye) message()      {}
func (Ping) message()         {}
