package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Session names one connection attempt to a scheduler, and its stream. Numbers rise and are
// never used twice.
type Session uint64

// Conn names one connection to a gateway, and the attempt to make it. Numbers rise and are
// never used twice.
type Conn uint64

// Attempt names the work on one call.
type Attempt uint64

// Event is something that happened to an agent. Events of a session, a connection or an attempt
// that is over change nothing.
type Event interface {
	// apply changes the state by the event.
	apply(c *Core, now time.Time)
}

// Begin is the first event.
type Begin struct{}

// Wake says that the timer of the last WakeAt has fired.
type Wake struct{}

// RuntimeReady says that the runtime of a spare instance has loaded and waits for the
// assignment.
type RuntimeReady struct{}

// Stop says that the agent's process was asked to stop.
type Stop struct{ Detail string }

// FunctionReady says that the function can be called.
type FunctionReady struct{}

// FunctionFailed says that the function will never be ready.
type FunctionFailed struct {
	// TimedOut says that it was not ready in time.
	TimedOut bool
	Detail   string
}

// FunctionEnded says that the function's process has ended, and how.
type FunctionEnded struct{ Detail string }

// Opened says that a dial has become a stream.
type Opened struct{ Session Session }

// Received is a message of a scheduler.
type Received struct {
	Session Session
	Reply   Reply
}

// Lost says that a dial failed or a stream ended.
type Lost struct {
	Session Session
	Cause   Cause
	Detail  string
}

// Cause is why a session ended.
type Cause int

const (
	// CauseBroken says that the connection broke, or never came up.
	CauseBroken Cause = iota
	// CauseClosed says that the scheduler closed the stream without an error: it has read
	// everything.
	CauseClosed
	// CauseUnknown says that the scheduler does not know the instance, or does not accept
	// its token.
	CauseUnknown
)

// Reply is a message of a scheduler, inside Received.
type Reply interface {
	// reply changes the state by the message.
	reply(c *Core, now time.Time)
}

// Welcome accepts a Hello.
type Welcome struct{ Epoch uint64 }

// Pong answers a Ping.
type Pong struct{}

// Ticket hands out a ticket.
type Ticket struct {
	Ticket invocation.Ticket
	// Lent says that the call's place stays with the gateway after the call.
	Lent bool
}

// Recall takes loans of a gateway back. A Pull answers it at once.
type Recall struct {
	// Gateway is the address, as in its tickets.
	Gateway string
	Calls   int
	// Term is for how much longer the gateway keeps those that it goes on using. Others go back
	// once they are idle for 2 ms, and after the term idle ones at once, and others when their
	// calls have ended.
	Term time.Duration
}

// LeaveAnswer answers a LeaveRequest.
type LeaveAnswer struct {
	Granted bool
	// AskAgain is when to ask again at the earliest, if it was not granted.
	AskAgain time.Duration
}

// Drain asks the instance to finish its calls and end.
type Drain struct {
	// Reason is ReasonDone, or ReasonUnsupported if the agent cannot talk to the
	// scheduler.
	Reason Reason
	Detail string
}

// EndReported says that the function has ended, as its scheduler's driver saw: the agent does not see that where they are
// containers.
type EndReported struct{ How string }

// Assignment says that a spare instance is a function's from now on.
type Assignment struct {
	// StartupTimeout bounds the time until the function can be called.
	StartupTimeout time.Duration
	// These are the function's, as in Params.
	Concurrency               int
	BackoffAfter, IdleTimeout time.Duration
}

// Moved says that the function's owner is elsewhere.
type Moved struct {
	// Addr is host:port; empty if it is not known.
	Addr string
	// Epoch is 0 if it is not known.
	Epoch uint64
}

// ConnOpened says that a connection to a gateway is open: the gateway has said welcome.
type ConnOpened struct{ Conn Conn }

// ConnLost says that a connection to a gateway could not be made, or has ended, for whatever
// reason. It is the connection's last event.
type ConnLost struct{ Conn Conn }

// Called is a call that a gateway hands over by a credit. Accept or Decline follows, unless the
// connection is lost.
type Called struct {
	Conn Conn
	// Call is its number on the connection.
	Call uint32
	ID   invocation.ID
	// Remaining is how long the call may take, its wait for a core included. With 0, as in
	// simulations without timeouts, it does not bound that wait.
	Remaining time.Duration
}

// Returned gives credits of a gateway back.
type Returned struct {
	Conn    Conn
	Credits int
}

// Granted says that a claim was granted.
type Granted struct{ Attempt Attempt }

// Refused says that a claim was refused.
type Refused struct{ Attempt Attempt }

// Cancelled says that the gateway wants no result any more.
type Cancelled struct{ Attempt Attempt }

// BodyCut says that the client broke off its request.
type BodyCut struct{ Attempt Attempt }

// GiveUp says that the gateway has a place on a calm node for a call that was said to wait.
type GiveUp struct{ Attempt Attempt }

// CallEnded says how a call came to its end. Deliver is its effect, and says what the gateway
// gets.
type CallEnded struct {
	Attempt Attempt
	Outcome Outcome
	// Exec is how long the function took; 0 if it saw nothing of the call.
	Exec time.Duration
	// Detail says what went wrong, for a person to read.
	Detail string
}

// Outcome is the state of the function after a call.
type Outcome int

const (
	// Broken says that the function may still be busy with the call.
	Broken Outcome = iota
	// Complete says that it has ended the call, well or not, and takes the next.
	Complete
	// NotStarted says that the function saw nothing of the call, and takes no calls any more.
	NotStarted
	// Untouched says that the function saw nothing of the call, and is as it was.
	Untouched
)

// NodeWelcome says how often the node agent gives a sign while a call waits for a core; 0 if it does not say. It
// is the first event of a connection to the node agent.
type NodeWelcome struct{ StillEvery time.Duration }

// NodeMode says whether the node is busy: whether more threads want to run than it has cores. Ask says
// that calls ask their node agent for a core meanwhile.
type NodeMode struct{ Busy, Ask bool }

// NodeGranted says that a call that asked may begin.
type NodeGranted struct{ Attempt Attempt }

// NodeStill says that the call that asked still waits.
type NodeStill struct{}

// NodeLow says whether the instance is in the low band: it gets what others leave of the cores.
type NodeLow struct{ Low bool }

// NodeLost says that the connection to the node agent has ended.
type NodeLost struct{}
