package process

import (
	"fmt"
	"syscall"
)

// cause is what began the end of an instance.
type cause int

const (
	causeNone cause = iota
	causeStop
	causeFunction
	causeAgent
)

// event is what can happen to an instance whose processes run.
type event int

const (
	eventStop event = iota
	eventFunctionEnded
	eventAgentEnded
	eventGraceOver
)

// action is what to do about an event.
type action int

const (
	startGrace action = iota
	// notifyAgent is to tell the agent that, and how, the function ended.
	notifyAgent
	termAgent
	termGroup
	killGroup
)

// lifecycle is the course of an instance from the start of its processes to their
// end. It decides; its owner watches, signals and waits.
type lifecycle struct {
	// cause is the first cause of the end.
	cause         cause
	functionEnded bool
	agentEnded    bool
}

// over says that both processes have ended.
func (l *lifecycle) over() bool { return l.functionEnded && l.agentEnded }

// handle returns what to do about an event, in order.
func (l *lifecycle) handle(e event) []action {
	switch e {
	case eventStop:
		// The function is not asked yet: the agent may be in a call.
		return l.beginEnd(causeStop, termAgent)
	case eventFunctionEnded:
		l.functionEnded = true
		if l.agentEnded {
			return nil
		}
		// An agent that were only asked to end would wait for calls that nobody
		// answers any more.
		return append(l.beginEnd(causeFunction), notifyAgent)
	case eventAgentEnded:
		l.agentEnded = true
		if l.functionEnded {
			return nil
		}
		if l.cause != causeNone {
			return []action{termGroup}
		}
		return l.beginEnd(causeAgent, termGroup)
	case eventGraceOver:
		return []action{killGroup}
	}
	return nil
}

// beginEnd starts the end; an end that has begun goes on as it was.
func (l *lifecycle) beginEnd(c cause, then ...action) []action {
	if l.cause != causeNone {
		return nil
	}
	l.cause = c
	return append([]action{startGrace}, then...)
}

// reasonStopped is the Reason of an instance that was asked to end.
const reasonStopped = "stopped"

// reason explains to people what ended the instance. The statuses are those of the two
// processes.
func (l *lifecycle) reason(function, agent syscall.WaitStatus) string {
	switch l.cause {
	case causeFunction:
		return "the function " + describe(function)
	case causeAgent:
		return "the agent " + describe(agent)
	default:
		return reasonStopped
	}
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("was killed by signal %v", status.Signal())
	}
	return fmt.Sprintf("exited with status %d", status.ExitStatus())
}
