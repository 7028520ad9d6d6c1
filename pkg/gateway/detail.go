package gateway

import (
	"encoding/json"
	"fmt"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// ProblemDetail says what callers read of a failure inside: lines of a function's log,
// stack traces, names of nodes and images.
type ProblemDetail string

// What ProblemDetail may be.
const (
	// DetailAll means all that is known, and DetailNone only where to look for it.
	DetailAll  ProblemDetail = "all"
	DetailNone ProblemDetail = "none"
)

// Validate says what is wrong with it.
func (d ProblemDetail) Validate() error {
	switch d {
	case DetailAll, DetailNone:
		return nil
	}
	return fmt.Errorf("--problem-detail %q is neither %s nor %s", string(d), DetailAll, DetailNone)
}

// outside is what callers read, by reason, instead of details that are told by
// functions, instances, nodes and issuers. Details of other reasons are the gateway's
// own, or limits.
var outside = map[string]string{
	string(invoke.RefusedCannotStart): "instances of the function do not start",
	string(invoke.RefusedNoCapacity):  "there is no room for an instance of the function",
	reasonFunction:                    "the function broke off the call",
	reasonBadAnswer:                   "the function's answer is not valid",
	reasonInstance:                    "the instance was lost during the call",
	reasonUnchecked:                   "the credentials cannot be checked now",
}

// of is a problem as callers may read it.
func (d ProblemDetail) of(p problem) problem {
	text, inside := outside[p.Reason]
	if d == DetailAll || !inside {
		return p
	}
	switch {
	case p.InvocationID != "":
		text += "; its operator sees why: windlass logs --invocation " + p.InvocationID
	case p.Function != "":
		text += "; its operator sees why: windlass describe " + p.Function
	}
	p.Detail = text
	return p
}

// trim takes the stack trace out of an error that a function has reported by its
// runtime, which says its type and message besides.
func (d ProblemDetail) trim(head *wirev1.ResultHead) {
	if d == DetailAll || head.GetFunctionError() == "" || !head.GetWhole() {
		return
	}
	var said map[string]json.RawMessage
	if json.Unmarshal(head.GetWholeBody(), &said) != nil {
		return
	}
	for _, name := range []string{"stackTrace", "stack_trace", "stack", "trace"} {
		delete(said, name)
	}
	body, err := json.Marshal(said)
	if err != nil {
		return
	}
	head.WholeBody, head.ContentLength = body, nil
}
