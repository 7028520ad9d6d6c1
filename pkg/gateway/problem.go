package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// problemWithin is how long a client may take to accept an answer of Windlass's own.
const problemWithin = 10 * time.Second

// Reasons of problems that the gateway itself finds. A scheduler's reasons are
// those of invoke.RefusalReason.
const (
	reasonNotFound    = "FunctionNotFound"
	reasonBodyTooBig  = "BodyTooLarge"
	reasonBadBody     = "BodyNotReadable"
	reasonNotUTF8     = "NotUTF8"
	reasonMalformed   = "Malformed"
	reasonOverloaded  = "GatewayOverloaded"
	reasonDraining    = "GatewayDraining"
	reasonQueueTime   = "NoInstanceInTime"
	reasonTimedOut    = "TimedOut"
	reasonFunction    = "FunctionLost"
	reasonBadAnswer   = "BadAnswer"
	reasonInstance    = core.InstanceLost
	reasonDeleted     = "FunctionDeleted"
	reasonUnknownPath = "UnknownPath"
	reasonMethod      = "MethodNotAllowed"
	reasonTooSlow     = "BodyTooSlow"
	reasonTooDeep     = "TooDeep"

	reasonMissing    = "CredentialsMissing"
	reasonInvalid    = "CredentialsInvalid"
	reasonNotAllowed = "NotAllowed"
	reasonUnchecked  = "CredentialsUnchecked"
	reasonOrigin     = "OriginNotAllowed"

	reasonNamespaceRate  = "NamespaceRate"
	reasonNamespaceCalls = "NamespaceCalls"
	reasonNamespaceBytes = "NamespaceBodies"
	reasonNamespaceShare = "NamespaceShare"
)

// problem is an error answer: RFC 9457 with Windlass's own members.
type problem struct {
	Type         string          `json:"type"`
	Title        string          `json:"title"`
	Status       int             `json:"status"`
	Detail       string          `json:"detail"`
	Reason       string          `json:"reason"`
	Executed     invoke.Executed `json:"executed"`
	InvocationID string          `json:"invocationId,omitempty"`
	Function     string          `json:"function,omitempty"`
	Attempt      int             `json:"attempt,omitempty"`

	retryAfter time.Duration
	// challenge is how to prove who one is, for 401.
	challenge string
}

func newProblem(status int, executed invoke.Executed, reason, detail string) problem {
	return problem{
		Type:     "about:blank",
		Title:    http.StatusText(status),
		Status:   status,
		Detail:   invoke.Excerpt(detail),
		Reason:   reason,
		Executed: executed,
	}
}

// fromRefusal is the answer to a client whose ticket a scheduler refuses.
func fromRefusal(r invoke.Refusal) problem {
	status := http.StatusServiceUnavailable
	switch r.Reason {
	case invoke.RefusedQueueFull, invoke.RefusedRate, invoke.RefusedConcurrency, invoke.RefusedWait:
		status = http.StatusTooManyRequests
	}
	p := newProblem(status, invoke.ExecutedNo, string(r.Reason), r.Detail)
	p.retryAfter = max(r.RetryAfter, time.Second)
	return p
}

func overloaded(calls int, bytes int64) problem {
	p := newProblem(http.StatusServiceUnavailable, invoke.ExecutedNo, reasonOverloaded,
		fmt.Sprintf("this gateway holds as much as it can, which is %d calls and %d bytes of bodies; try again soon",
			calls, bytes))
	p.retryAfter = time.Second
	return p
}

func tooBig(executed invoke.Executed, limit int64) problem {
	return newProblem(http.StatusRequestEntityTooLarge, executed, reasonBodyTooBig,
		fmt.Sprintf("the request body is larger than the limit of %d bytes; send less, or raise the gateway's limit (windlass up --max-body-size)", limit))
}

// unreadable is the answer to a client whose small body could not be read.
func unreadable(err error) problem {
	if errors.Is(err, errTooSlow) {
		return tooSlow(invoke.ExecutedNo)
	}
	return newProblem(http.StatusBadRequest, invoke.ExecutedNo, reasonBadBody, "reading the request body: "+err.Error())
}

func tooSlow(executed invoke.Executed) problem {
	return newProblem(http.StatusRequestTimeout, executed, reasonTooSlow,
		fmt.Sprintf("the request body did not come in time: it may stand still for %v and must come at %d bytes a second; send it faster, or in several calls", bodyGrace, bodyRate))
}

func timedOut(fn *v1alpha1.Function) problem {
	return newProblem(http.StatusGatewayTimeout, invoke.ExecutedMaybe, reasonTimedOut,
		fmt.Sprintf("the function did not finish within its timeout of %v", fn.Spec.Timeout.Duration))
}

// Forbid answers a request that must not come to a function: 403, OriginNotAllowed.
func Forbid(w http.ResponseWriter, why string) {
	newProblem(http.StatusForbidden, invoke.ExecutedNo, reasonOrigin, why).send(w, DetailAll)
}

// maxProblem bounds the document of a problem in bytes. It is less than what a server
// of HTTP/2 gathers (4 KiB) before it waits for its client.
const maxProblem = 3 << 10

// document is a problem in JSON. A detail that is too long is cut.
func (p problem) document() []byte {
	for {
		body, _ := json.Marshal(p)
		over := len(body) + 1 - maxProblem
		if over <= 0 || p.Detail == "" {
			return append(body, '\n')
		}
		p.Detail = invoke.ExcerptOf(p.Detail, len(p.Detail)-over)
	}
}

// send answers with a problem, with as much detail as callers may read. The header
// must not have been sent, and the goroutine is that of the client's handler: it waits
// for the client, for problemWithin at most.
func (p problem) send(w http.ResponseWriter, detail ProblemDetail) {
	p = detail.of(p)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(problemWithin))
	body := p.document()
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set(invoke.HeaderExecuted, string(p.Executed))
	if p.InvocationID != "" {
		h.Set(invoke.HeaderInvocationID, p.InvocationID)
	}
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

// ProblemDetail says what callers read of a failure inside: lines of a function's log,
// stack traces, names of nodes and images.
type ProblemDetail string

// What ProblemDetail may be.
const (
	// DetailAll means all that is known, and DetailNone only where to look for it.
	DetailAll  ProblemDetail = "All"
	DetailNone ProblemDetail = "None"
)

// Validate says what is wrong with it.
func (d ProblemDetail) Validate() error {
	switch d {
	case DetailAll, DetailNone:
		return nil
	}
	return fmt.Errorf("--problem-detail %q is neither %s nor %s", string(d), DetailAll, DetailNone)
}

// outside is what callers read, by reason, instead of details that come from
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
func (d ProblemDetail) trim(head *agentwire.ResultHead) {
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
