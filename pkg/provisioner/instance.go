package provisioner

import (
	"errors"
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

var (
	// ErrUnknownInstance is returned for an instance that was not ordered or
	// has ended.
	ErrUnknownInstance = errors.New("provisioner: no such instance")
	// ErrBadToken is returned when an agent's token is not the one that its
	// instance was started with.
	ErrBadToken = errors.New("provisioner: wrong instance token")
)

// State is where an instance is in its life.
type State int

const (
	// Creating instances were ordered, and have not pulled yet.
	Creating State = iota
	// Created instances have pulled.
	Created
	// Leaving instances said goodbye, were let go, or were stopped.
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
	State State
	// Revision is the Function.Revision that it was started for.
	Revision string
	Token    string
	Node     string
	Requests placement.Amount
	// Launched is when it was ordered, and StartBy when it must have pulled.
	Launched time.Time
	StartBy  time.Time
	// Adopted says that somebody else started it, and Ran that it ran then.
	Adopted, Ran bool
	// Spare says that it was a spare instance before, of which its start says
	// nothing about others.
	Spare bool
	// Connected says that its agent's stream is there; DisconnectedAt is when
	// the stream ended, valid while a created instance is not connected.
	Connected      bool
	DisconnectedAt time.Time
	// EndBy is when a leaving instance must have ended by itself; zero if the
	// runtime was told to end it.
	EndBy time.Time
	// AgentReason is what its agent said when it gave the instance up because of
	// its function, and AgentCode the condition reason for it; both are empty
	// for an instance that goes as it should.
	AgentReason, AgentCode string
	// Cause is why it was told to end, if somebody knows better than its
	// exit will, and CauseCode the condition reason for it.
	Cause, CauseCode string
}

// Ending is how an instance comes to its end.
type Ending struct {
	// Within is how long the instance may take to end by itself, from the first
	// notice on; after that it is stopped. With 0 the runtime ends it now.
	Within time.Duration
	// Code and Reason say what went wrong, if anything did: the code is one of the
	// condition reasons of a Function. With Within, the agent gave the instance up
	// because of what its function did; without, because it did not start.
	Code, Reason string
}

// markEnding notes how an instance ends.
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

// setCause keeps the first reason why an instance is to end.
func (in *Instance) setCause(code, reason string) {
	if in.Cause == "" {
		in.Cause, in.CauseCode = reason, code
	}
}

// markLeaving says that an instance is expected to end by itself until then, the first
// time that it is said; or, if that is zero, that the runtime ends it. One that
// was blamed already ends for that reason.
func (in *Instance) markLeaving(endBy time.Time) {
	if in.Cause == "" && (in.State != Leaving || endBy.IsZero()) {
		in.State, in.EndBy = Leaving, endBy
	}
}

// neverConnected tells whether nobody has heard of an instance that is being created.
func (in *Instance) neverConnected() bool {
	return in.State == Creating && !in.Ran && !in.Spare && !in.Connected && in.DisconnectedAt.IsZero() && in.Cause == ""
}

// disconnected tells whether the agent of an instance that is not leaving has gone.
func (in *Instance) disconnected() bool {
	return in.State != Leaving && !in.Connected && !in.DisconnectedAt.IsZero()
}

// startFailed tells whether an instance that ended like this did not start.
func (in *Instance) startFailed() bool { return in.State == Creating && !in.Adopted }

// overdue tells whether an instance should have pulled or ended by now, or has been
// silent for too long, and nobody has told it to end for that.
func (in *Instance) overdue(now time.Time) bool {
	switch {
	case in.Cause != "":
		return false
	case in.State == Creating:
		return now.After(in.StartBy)
	case in.State == Created:
		return !in.Connected && now.Sub(in.DisconnectedAt) > reconnectTimeout
	}
	return !in.EndBy.IsZero() && now.After(in.EndBy)
}

// overdueCode tells an instance that did not come from one that had been there.
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
	case in.startFailed():
		return "its agent did not connect in time"
	}
	return "its agent was silent for too long"
}
