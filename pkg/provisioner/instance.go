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
	// Ordered is when it was ordered, and StartBy when it must have pulled.
	Ordered time.Time
	StartBy time.Time
	// Adopted says that somebody else started it, and Ran that it ran then.
	Adopted, Ran bool
	// Spare says that it was a spare instance before, of which its start says
	// nothing about others.
	Spare bool
	// Connected says that its agent's stream is there; SilentSince is when
	// the stream ended, valid while a created instance is not connected.
	Connected   bool
	SilentSince time.Time
	// EndBy is when a leaving instance must have ended by itself; zero if the
	// runtime was told to end it.
	EndBy time.Time
	// Broken is what its agent said when it gave the instance up because of
	// its function, and BrokenCode the condition reason for it; both are empty
	// for an instance that goes as it should.
	Broken, BrokenCode string
	// Blamed is why it was told to end, if somebody knows better than its
	// exit will, and BlamedCode the condition reason for it.
	Blamed, BlamedCode string
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

// end notes how an instance ends.
func (in *Instance) end(how Ending, now time.Time) {
	switch {
	case how.Within == 0 && how.Code != "":
		in.blame(how.Code, how.Reason)
	case how.Within == 0:
		in.leave(time.Time{})
	default:
		if how.Code != "" && in.Broken == "" {
			in.Broken, in.BrokenCode = how.Reason, how.Code
		}
		in.leave(now.Add(how.Within))
	}
}

// blame keeps the first reason why an instance is to end.
func (in *Instance) blame(code, reason string) {
	if in.Blamed == "" {
		in.Blamed, in.BlamedCode = reason, code
	}
}

// leave says that an instance is expected to end by itself until then, the first
// time that it is said; or, if that is zero, that the runtime ends it. One that
// was blamed already ends for that reason.
func (in *Instance) leave(endBy time.Time) {
	if in.Blamed == "" && (in.State != Leaving || endBy.IsZero()) {
		in.State, in.EndBy = Leaving, endBy
	}
}

// unheard tells whether nobody has heard of an instance that is being created.
func (in *Instance) unheard() bool {
	return in.State == Creating && !in.Ran && !in.Spare && !in.Connected && in.SilentSince.IsZero() && in.Blamed == ""
}

// silent tells whether the agent of an instance that is not leaving has gone.
func (in *Instance) silent() bool {
	return in.State != Leaving && !in.Connected && !in.SilentSince.IsZero()
}

// startFailed tells whether an instance that ended like this did not start.
func (in *Instance) startFailed() bool { return in.State == Creating && !in.Adopted }

// overdue tells whether an instance should have pulled or ended by now, or has been
// silent for too long, and nobody has told it to end for that.
func (in *Instance) overdue(now time.Time) bool {
	switch {
	case in.Blamed != "":
		return false
	case in.State == Creating:
		return now.After(in.StartBy)
	case in.State == Created:
		return !in.Connected && now.Sub(in.SilentSince) > silencePatience
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
	if in.State == Leaving {
		return "it did not end in time after it was let go"
	}
	return "its agent was not heard of in time"
}
