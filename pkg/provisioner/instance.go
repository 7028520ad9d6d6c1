package provisioner

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

var (
	// ErrUnknownInstance is returned for an instance that was not launched or
	// has ended.
	ErrUnknownInstance = errors.New("provisioner: no such instance")
	// ErrBadToken is returned when an agent's token is not the one that its
	// instance was started with.
	ErrBadToken = errors.New("provisioner: wrong instance token")
)

// State is the stage of an instance's life.
type State int

const (
	// Creating instances were launched and have not pulled yet.
	Creating State = iota
	// Created instances have pulled.
	Created
	// Leaving instances said goodbye, were drained, or were stopped.
	Leaving
)

// String is the state's name.
func (s State) String() string {
	switch s {
	case Creating:
		return "creating"
	case Created:
		return "created"
	case Leaving:
		return "leaving"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Key names an instance.
type Key struct {
	FunctionUID string
	CID         invocation.CID
}

// Instance is one entry of the inventory.
type Instance struct {
	Key
	// Function is its function's name, for people.
	Function invocation.FunctionKey
	State    State
	// Revision is the Function.Revision that it was started for.
	Revision string
	Token    string
	Node     string
	Requests placement.Amount
	// Launched is when it was launched, and StartWithin how long it may take from its creation
	// until its first pull. StartBy is the deadline of that, zero until it was created.
	Launched    time.Time
	StartWithin time.Duration
	StartBy     time.Time
	// Adopted says that another scheduler started it, and Ran that it had run before.
	Adopted, Ran bool
	// Spare says that it was a spare instance before, so that its start time says nothing
	// about other starts.
	Spare bool
	// Connected says that its agent has a stream. DisconnectedAt is when the stream ended,
	// valid while a created instance is not connected.
	Connected      bool
	DisconnectedAt time.Time
	// EndBy is when a leaving instance must have ended by itself; zero if the driver ends it.
	EndBy time.Time
	// Finished says that it had no calls to finish when it was stopped as overdue.
	Finished bool
	// AgentReason is the agent's reason for giving the instance up because of its function,
	// and AgentCode its condition reason; both are empty for an instance that leaves normally.
	AgentReason, AgentCode string
	// Cause is why the scheduler ended it, if that says more than its exit, and CauseCode its
	// condition reason.
	Cause, CauseCode string
}

// Ending says how to end an instance.
type Ending struct {
	// Within is how long the instance may take to end by itself, from the first notice on;
	// after that it is stopped. With 0 the driver ends it now.
	Within time.Duration
	// Finished says that the instance has finished its calls, and gets no more.
	Finished bool
	// Code and Reason say what went wrong, if anything: Code is a condition reason of a
	// Function. With Within, the agent gave the instance up because of its function; without,
	// the instance did not start.
	Code, Reason string
}

// YoungestFirst orders instances by their launch and, if that is the same, the higher CID first.
func YoungestFirst(a, b Instance) int {
	return cmp.Or(b.Launched.Compare(a.Launched), cmp.Compare(b.CID, a.CID))
}

// markEnding records how an instance ends.
func (in *Instance) markEnding(how Ending, now time.Time) {
	switch {
	case how.Within == 0 && how.Code != "":
		in.setCause(how.Code, how.Reason)
	case how.Within == 0:
		in.markLeaving(time.Time{})
	default:
		if how.Code != "" && in.AgentReason == "" {
			in.AgentReason, in.AgentCode = how.Reason, how.Code
		}
		in.markLeaving(now.Add(how.Within))
	}
}

// setCause keeps the first cause of an instance's end.
func (in *Instance) setCause(code, reason string) {
	if in.Cause == "" {
		in.Cause, in.CauseCode = reason, code
	}
}

// markLeaving records, once, that an instance is expected to end by itself until then, or, if
// that is zero, that the driver ends it. An instance that has a cause already keeps it.
func (in *Instance) markLeaving(endBy time.Time) {
	if in.Cause == "" && (in.State != Leaving || endBy.IsZero()) {
		in.State, in.EndBy = Leaving, endBy
	}
}

// Stopping reports whether an instance was stopped, or asked to end.
func (in *Instance) Stopping() bool { return in.State == Leaving || in.Cause != "" }

// neverConnected reports whether an instance is starting and its agent has not connected yet.
func (in *Instance) neverConnected() bool {
	return in.State == Creating && !in.Ran && !in.Spare && in.unheard() && in.Cause == ""
}

// unheard reports whether an instance's agent has never had a stream here.
func (in *Instance) unheard() bool { return !in.Connected && in.DisconnectedAt.IsZero() }

// disconnected reports whether the agent of an instance that is not leaving has lost its
// stream.
func (in *Instance) disconnected() bool {
	return in.State != Leaving && !in.Connected && !in.DisconnectedAt.IsZero()
}

// startFailed reports whether an instance that has ended now failed to start.
func (in *Instance) startFailed() bool { return in.State == Creating && !in.Adopted }

// overdue tells whether an instance should have pulled or ended by now, or has been
// silent for too long, and nobody has told it to end for that.
func (in *Instance) overdue(now time.Time) bool {
	switch {
	case in.Cause != "":
		return false
	case in.State == Creating:
		return !in.StartBy.IsZero() && now.After(in.StartBy)
	case in.State == Created:
		return !in.Connected && now.Sub(in.DisconnectedAt) > reconnectTimeout
	}
	return !in.EndBy.IsZero() && now.After(in.EndBy)
}

// setStartBy sets the deadline of the first pull, once, if the instance was created. Before that
// its driver ends it if it cannot create it, and says why.
func (in *Instance) setStartBy(created time.Time) {
	if in.StartBy.IsZero() && !created.IsZero() {
		in.StartBy = created.Add(in.StartWithin)
	}
}

// overdueCode distinguishes an instance that never connected from one that did.
func (in *Instance) overdueCode() string {
	if in.startFailed() {
		return v1alpha1.ReasonStartTimeout
	}
	return v1alpha1.ReasonAgentSilent
}

func (in *Instance) overdueReason() string {
	switch {
	case in.State == Leaving:
		return "it did not end in time after it was asked to"
	case in.startFailed() && in.unheard():
		return "its agent did not connect in time"
	case in.startFailed():
		return "it was not ready in time"
	}
	return "its agent was silent for too long"
}
