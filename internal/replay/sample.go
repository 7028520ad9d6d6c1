package replay

import (
	"fmt"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Outcome says how far a call came.
type Outcome int

const (
	// Answered says that the whole answer arrived.
	Answered Outcome = iota
	// NoAnswer says that the call was sent and no whole answer arrived in time.
	NoAnswer
	// NotSent says that the call was due and was not sent.
	NotSent
	// CutOff says that the replay itself was stopped while the call was under way.
	CutOff
)

// Sample is the result of one call.
type Sample struct {
	// Function is the target's name.
	Function string
	// At is when the call was due, from the start of the replay, and Late
	// how much later the sender got to it.
	At, Late time.Duration
	// Outcome says which of the fields below mean something.
	Outcome Outcome
	// Total is the time from sending to the last byte of the answer.
	Total time.Duration
	// Status of the answer; 0 if none arrived.
	Status int
	// Executed is what the answer says; empty if it does not say.
	Executed invocation.Executed
	// Own is the function's own time, if OwnKnown.
	Own      time.Duration
	OwnKnown bool
	// Cold says that the call began on an instance that was started for it.
	Cold bool
	// Failure is why the call counts as an error; empty if it does not.
	Failure string
}

// Failed says whether the call counts as an error.
func (s Sample) Failed() bool { return s.Failure != "" }

// Lost says that the outcome of the call is unknown: no whole answer arrived, or one that does
// not say whether the function ran.
func (s Sample) Lost() bool {
	return s.Outcome == NoAnswer || s.Outcome == Answered && s.Executed == ""
}

// Setup is the total time minus the function's own time, at least 0.
func (s Sample) Setup() time.Duration { return max(0, s.Total-s.Own) }

// read fills in the result of the call.
func (s *Sample) read(c loadgen.Call) {
	s.Total = c.Took()
	switch c.Outcome {
	case loadgen.Answered:
		s.readAnswer(c.Status, c.Header)
	case loadgen.NotSent:
		s.Outcome, s.Total, s.Failure = NotSent, 0, "not sent: "+c.Err.Error()
	case loadgen.CutOff:
		s.Outcome = CutOff
	default:
		s.Outcome, s.Failure = NoAnswer, "no answer: "+c.Cause()
	}
}

// readAnswer fills in what a whole answer says.
func (s *Sample) readAnswer(status int, header http.Header) {
	s.Outcome = Answered
	s.Status = status
	timing, known := invocation.ParseTiming(header[invocation.HeaderTiming])
	s.Cold, s.Own, s.OwnKnown = timing.Cold, timing.Function, known
	switch e := invocation.Executed(header.Get(invocation.HeaderExecuted)); e {
	case invocation.ExecutedNo, invocation.ExecutedMaybe, invocation.ExecutedYes:
		s.Executed = e
	}
	s.Failure = answerFailure(*s, header.Get(invocation.HeaderFunctionError))
}

func answerFailure(s Sample, functionError string) string {
	switch {
	case s.Executed == "":
		return fmt.Sprintf("status %d without a valid %s", s.Status, invocation.HeaderExecuted)
	case s.Executed != invocation.ExecutedYes:
		return fmt.Sprintf("status %d, executed: %s", s.Status, s.Executed)
	case functionError != "":
		return "function error " + functionError
	case s.Status < 200 || s.Status > 399:
		return fmt.Sprintf("status %d from the function", s.Status)
	}
	return ""
}
