package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Effect is something for the agent to do.
type Effect interface{ isEffect() }

// GatewayEffect is an Effect that is about gateways and their calls.
type GatewayEffect interface {
	Effect
	isGatewayEffect()
}

// NodeEffect is an Effect that is about the node agent.
type NodeEffect interface {
	Effect
	isNodeEffect()
}

// Dial connects to a scheduler and opens a stream. It fails at once if the scheduler refuses
// the connection. Opened or Lost follows.
type Dial struct {
	Session Session
	// Addr is host:port; empty for any scheduler.
	Addr string
}

// Send sends a message on a session's stream.
type Send struct {
	Session Session
	Message Message
}

// HangUp closes the agent's side of the stream, behind everything sent so far.
type HangUp struct{ Session Session }

// Drop cancels a connection attempt or a stream. No event of its session counts afterwards.
type Drop struct{ Session Session }

// Message is what an agent may send to a scheduler.
type Message interface{ isMessage() }

// Hello is the first message of a stream.
type Hello struct {
	// Spare says that the instance belongs to no function yet.
	Spare bool
	// Age is how long ago the instance began or, if it was a spare one, was
	// assigned, and ReadyAfter how long after that its function was ready; 0 if
	// it is not ready yet. Both are 0 once a scheduler has accepted a hello.
	Age, ReadyAfter time.Duration
}

// Pull asks for tickets, gives finished ones back, and says what is lent.
type Pull struct {
	// Credits is how many more tickets can be taken, at least 0.
	Credits int
	Done    []Done
	// Loans are all loans of the instance, by their gateways' addresses in order.
	Loans []Loan
	// Idle is how long an instance with loans has run no call; 0 if it runs one, or has until
	// a moment ago.
	Idle time.Duration
	// NodeBusy says that more threads want to run on the node than it has cores.
	NodeBusy bool
	// LongWait is the call that has long waited for a core of the node; zero if none has.
	LongWait LongWait
	// Low says that the instance runs a call and has been in the low band for invocation.LongCoreWait.
	Low bool
}

// LongWait is a call that waits for a core of its node, and has not begun.
type LongWait struct {
	ID invocation.ID
	// Waited is for how long, at least invocation.LongCoreWait.
	Waited time.Duration
	// ByLoan says that its gateway has handed it over. Otherwise the instance has its ticket,
	// and has not claimed it.
	ByLoan bool
}

// Ticket is the invocation of the ticket that waits; zero if the call came by a loan. Simulators, which
// have no wire between agent and scheduler, ask for it.
func (w LongWait) Ticket() invocation.ID {
	if w.ByLoan {
		return invocation.ID{}
	}
	return w.ID
}

// Loan says how many calls at a time the instance takes directly from a gateway, at least 1.
// Those that run count.
type Loan struct {
	// Gateway is the address, as in its tickets.
	Gateway string
	Calls   int
}

// Done gives back a ticket.
type Done struct {
	ID invocation.ID
	// Exec is how long the function took; 0 if it did not run.
	Exec time.Duration
	// CoreWait is how long it waited for a core of the node, as far as no Pull said so.
	CoreWait time.Duration
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

// Ping is a heartbeat. The scheduler answers it.
type Ping struct {
	// Every is how soon the next one follows at the latest.
	Every  time.Duration
	Report Report
}

// Reason is why an instance drains.
type Reason int

const (
	// ReasonDone says that a scheduler asked it to end, or that no scheduler knows it.
	ReasonDone Reason = iota
	// ReasonStartFailed says that the function will never be ready.
	ReasonStartFailed
	// ReasonStartTimedOut says that the function was not ready in time.
	ReasonStartTimedOut
	// ReasonFunctionEnded says that the function takes no calls any more.
	ReasonFunctionEnded
	// ReasonCallBroken says that the function may still be busy with a broken call.
	ReasonCallBroken
	// ReasonStopped says that the agent's process was asked to stop.
	ReasonStopped
	// ReasonUnsupported says that the agent does not speak the scheduler's protocol.
	ReasonUnsupported
	// ReasonIdle says that a scheduler let it leave. No goodbye has it.
	ReasonIdle
)

func (r Reason) String() string {
	return [...]string{
		ReasonDone: "Done", ReasonStartFailed: "StartFailed", ReasonStartTimedOut: "StartTimedOut", ReasonFunctionEnded: "FunctionEnded",
		ReasonCallBroken: "CallBroken", ReasonStopped: "Stopped", ReasonUnsupported: "Unsupported", ReasonIdle: "Idle",
	}[r]
}

// LoadFunction makes the spare instance one of the function in the received Assignment:
// messages carry its identity from now on, and the runtime loads its code. FunctionReady or
// FunctionFailed follows.
type LoadFunction struct{}

// Connect connects to a gateway. ConnOpened or ConnLost follows. If the last connection to
// the same address broke, the hello says so.
type Connect struct {
	Conn Conn
	// Addr is host:port.
	Addr string
}

// Disconnect ends the attempt to make a connection, or closes the agent's side of one behind
// everything sent so far. ConnLost follows within seconds.
type Disconnect struct{ Conn Conn }

// Claim claims a call at its gateway, whose connection is open. Granted or Refused follows,
// unless the connection is lost.
type Claim struct {
	Attempt Attempt
	Conn    Conn
	Ticket  invocation.Ticket
}

// Accept takes a call that came by a loan. Start follows, or Deliver if it will not begin.
type Accept struct {
	Attempt Attempt
	// Conn and Call are those of the Called.
	Conn Conn
	Call uint32
}

// Start hands a call to the function. CallEnded follows.
type Start struct {
	Attempt Attempt
	// CoreWait is how long the call waited for a core of the node.
	CoreWait time.Duration
}

// Deliver ends an attempt: it sends the last frame of the answer, or the release of a call that
// did not begin. It is the effect of a CallEnded, or ends an accepted call that was not started,
// and no event of its attempt counts afterwards.
type Deliver struct {
	Attempt Attempt
	// Keeps says that the call's place stays with the gateway, as a credit.
	Keeps bool
	// Late says that an accepted call has waited for a core for too long: its gateway
	// answers the client, and gives the call to no other instance.
	Late bool
}

// Release releases a claim, granted or not, at the gateway, and ends the attempt.
type Release struct{ Attempt Attempt }

// Decline releases a call that came by a credit which the agent has taken back. The function
// does not get it.
type Decline struct {
	Conn Conn
	Call uint32
}

// Lend gives a gateway more credits, at least 1.
type Lend struct {
	Conn    Conn
	Credits int
}

// TakeBack takes credits of a gateway back, at least 1.
type TakeBack struct {
	Conn    Conn
	Credits int
}

// TellNode tells a gateway, whose connection is open, whether the node is busy. Until then it is
// calm.
type TellNode struct {
	Conn Conn
	Busy bool
}

// TellWait tells the gateway of a call that came by a loan whether it has waited for
// invocation.LongCoreWait for a core of the node, and has not begun. GiveUp may follow.
type TellWait struct {
	Attempt Attempt
	Waits   bool
}

// Cancel shows the function that the client no longer waits for its answer. CallEnded still
// follows.
type Cancel struct{ Attempt Attempt }

// Cut ends a call whose function has ended, so that there will be no answer. CallEnded still
// follows.
type Cut struct{ Attempt Attempt }

// AskCore asks the node agent for a core, for a call that came just now. NodeGranted follows,
// NodeStill until then, or NodeLost. The connection to the node agent is open.
type AskCore struct{ Attempt Attempt }

// GiveUpCore says that the call that asked does not wait any more, and has not begun.
type GiveUpCore struct{ Attempt Attempt }

// ReportRunning informs the node agent of a call that began without asking.
type ReportRunning struct{ Attempt Attempt }

// EndCore says that the call that the node agent knows of has ended. Refused says that its gateway
// did not grant it: then it has computed nothing, and says nothing about the function.
type EndCore struct{ Refused bool }

// Quiet gives memory back.
type Quiet struct{}

// RunAudit collects what really runs in the process. Audit follows.
type RunAudit struct{}

// WakeAt sets the one timer for the next Wake.
type WakeAt struct{ Time time.Time }

// Draining says that the instance takes no more tickets, and why.
type Draining struct {
	Reason Reason
	Detail string
}

// Drained says that no call runs any more, nor will one.
type Drained struct{}

// End says that the agent has finished. No effect follows it.
type End struct{}

func (Dial) isEffect()          {}
func (Send) isEffect()          {}
func (HangUp) isEffect()        {}
func (Drop) isEffect()          {}
func (LoadFunction) isEffect()  {}
func (Connect) isEffect()       {}
func (Disconnect) isEffect()    {}
func (Claim) isEffect()         {}
func (Accept) isEffect()        {}
func (Start) isEffect()         {}
func (Deliver) isEffect()       {}
func (Release) isEffect()       {}
func (Decline) isEffect()       {}
func (Lend) isEffect()          {}
func (TakeBack) isEffect()      {}
func (TellNode) isEffect()      {}
func (TellWait) isEffect()      {}
func (Cancel) isEffect()        {}
func (Cut) isEffect()           {}
func (AskCore) isEffect()       {}
func (GiveUpCore) isEffect()    {}
func (ReportRunning) isEffect() {}
func (EndCore) isEffect()       {}
func (Quiet) isEffect()         {}
func (RunAudit) isEffect()      {}
func (WakeAt) isEffect()        {}
func (Draining) isEffect()      {}
func (Drained) isEffect()       {}
func (End) isEffect()           {}

func (Connect) isGatewayEffect()    {}
func (Disconnect) isGatewayEffect() {}
func (Claim) isGatewayEffect()      {}
func (Accept) isGatewayEffect()     {}
func (Start) isGatewayEffect()      {}
func (Deliver) isGatewayEffect()    {}
func (Release) isGatewayEffect()    {}
func (Decline) isGatewayEffect()    {}
func (Lend) isGatewayEffect()       {}
func (TakeBack) isGatewayEffect()   {}
func (TellNode) isGatewayEffect()   {}
func (TellWait) isGatewayEffect()   {}
func (Cancel) isGatewayEffect()     {}
func (Cut) isGatewayEffect()        {}

func (AskCore) isNodeEffect()       {}
func (GiveUpCore) isNodeEffect()    {}
func (ReportRunning) isNodeEffect() {}
func (EndCore) isNodeEffect()       {}

func (Hello) isMessage()        {}
func (Pull) isMessage()         {}
func (LeaveRequest) isMessage() {}
func (Goodbye) isMessage()      {}
func (Ping) isMessage()         {}
