package gateway

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// problemWithin is how long a client may take to accept an answer of Windlass's own.
const problemWithin = 10 * time.Second

// problem is an error answer: RFC 9457 with Windlass's own members.
type problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance,omitempty"`

	Reason       string              `json:"reason"`
	Executed     invocation.Executed `json:"executed"`
	RetryAfterMs int64               `json:"retryAfterMs,omitempty"`
	Function     string              `json:"function,omitempty"`
	Attempt      int                 `json:"attempt,omitempty"`

	kind       problems.Type
	invocation string // the id of the call; empty if it was not taken in
	revision   string // the name of the FunctionRevision; empty if there is none
	retryAfter time.Duration
	// challenge says how to authenticate, for 401.
	challenge string
}

// leastRetryAfter is when to try again if nothing better is known.
const leastRetryAfter = time.Second

// newProblem is a problem of a type that package problems lists.
func newProblem(reason, detail string) problem {
	kind, known := problems.Of(reason)
	if !known {
		kind, _ = problems.Of(problems.Refused)
	}
	p := problem{Detail: invocation.Excerpt(detail)}
	p.become(kind)
	return p
}

// become makes it one of another type, with the same detail.
func (p *problem) become(kind problems.Type) {
	p.kind = kind
	p.Reason, p.Executed = kind.Reason, kind.Executed()
	p.Type, p.Title, p.Status = kind.URI(), kind.Title, kind.Status
}

// retryDelay is when to try again; 0 if that is useless.
func (p problem) retryDelay() time.Duration {
	if !p.kind.Retry() {
		return 0
	}
	return max(p.retryAfter, leastRetryAfter)
}

// fromRefusal is the answer to a client whose ticket a scheduler refuses.
func fromRefusal(r invocation.Refusal) problem {
	p := newProblem(string(r.Reason), r.Detail)
	p.retryAfter = r.RetryAfter
	return p
}

func overloaded(calls int, bytes int64) problem {
	return newProblem(problems.GatewayOverloaded,
		fmt.Sprintf("this gateway holds as much as it can, which is %d calls and %d bytes of bodies; try again soon",
			calls, bytes))
}

func tooBig(limit int64) problem {
	return newProblem(problems.BodyTooLarge,
		fmt.Sprintf("the request body is larger than the limit of %d bytes; send less, or raise the gateway's limit (windlass up --max-body-size)", limit))
}

// unreadable is the answer to a client whose small body could not be read.
func unreadable(why string) problem {
	return newProblem(problems.BodyNotReadable, "reading the request body: "+why)
}

// tooLate is the answer to a client whose small body was not here when the call had waited for as long
// as it may.
func tooLate(limit time.Duration) problem {
	return newProblem(problems.BodyTooSlow,
		fmt.Sprintf("the request body did not arrive within %v, which is as long as the call may wait; send it faster, or raise the function's calls.queueTimeout", limit))
}

func tooSlow() problem {
	return newProblem(problems.BodyTooSlow,
		fmt.Sprintf("the request body arrived too slowly: it may pause for %v and must arrive at %d bytes a second; send it faster, or in several calls", bodyGrace, bodyRate))
}

func timedOut(fn *v1alpha1.Function) problem {
	return newProblem(problems.TimedOut,
		fmt.Sprintf("the function did not finish within its timeout of %v", fn.Spec.Template.Timeout))
}

// Forbid answers a request that must not come to a function: 403, OriginNotAllowed.
func Forbid(w http.ResponseWriter, why string) {
	newProblem(problems.OriginNotAllowed, why).write(w, DetailAll)
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
		p.Detail = invocation.ExcerptOf(p.Detail, len(p.Detail)-over)
	}
}

// write answers with a problem, with as much detail as callers may read. The header must not
// have been sent, and the goroutine is that of the client's handler: it waits for the client,
// for problemWithin at most.
func (p problem) write(w http.ResponseWriter, detail ProblemDetail) {
	p = detail.redact(p)
	if p.kind.Retry() {
		p.RetryAfterMs = max(0, p.retryAfter.Milliseconds())
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(problemWithin))
	body := p.document()
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set(invocation.HeaderExecuted, string(p.Executed))
	if p.invocation != "" {
		h.Set(invocation.HeaderInvocationID, p.invocation)
	}
	if p.revision != "" {
		h.Set(invocation.HeaderRevision, p.revision)
	}
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	if wait := p.retryDelay(); wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

// ProblemDetail is how much callers read about internal failures: lines of a function's log,
// stack traces, names of nodes and images.
type ProblemDetail string

// What ProblemDetail may be.
const (
	// DetailAll means all that is known, and DetailNone only where to look for it.
	DetailAll  ProblemDetail = "All"
	DetailNone ProblemDetail = "None"
)

// Validate returns an error for an unknown value.
func (d ProblemDetail) Validate() error {
	switch d {
	case DetailAll, DetailNone:
		return nil
	}
	return fmt.Errorf("--problem-detail %q is neither %s nor %s", string(d), DetailAll, DetailNone)
}

// publicDetails are what callers read, by reason, instead of details that come from functions,
// instances, nodes and issuers. Details of other reasons are the gateway's own, or limits.
var publicDetails = map[string]string{
	string(invocation.RefusedCannotStart): "instances of the function do not start",
	string(invocation.RefusedNoCapacity):  "no node has room for an instance of the function",
	problems.FunctionLost:                 "the function broke off the call",
	problems.BadAnswer:                    "the function's answer is not valid",
	problems.InstanceLost:                 "the instance was lost during the call",
	problems.CredentialsUnchecked:         "the credentials cannot be checked now",
	problems.InstanceLeft:                 "the instance stopped before it ran the call",
	problems.OutcomeUnknown:               "the call could not run again, and an instance that was lost may have run it",
	problems.Refused:                      "the call was refused",
}

// redact is a problem as callers may read it.
func (d ProblemDetail) redact(p problem) problem {
	text, inside := publicDetails[p.Reason]
	if d == DetailAll || !inside {
		return p
	}
	switch {
	case p.invocation != "":
		text += "; the operator can see why: windlass logs --invocation " + p.invocation
	case p.Function != "":
		text += "; the operator can see why: windlass describe " + p.Function
	}
	p.Detail = text
	return p
}

// trimStack removes the stack trace from an error that a function reported through its
// runtime; type and message stay.
func (d ProblemDetail) trimStack(head *callwire.Head) {
	if d == DetailAll || head.FunctionError == "" || !head.Whole {
		return
	}
	var said map[string]json.RawMessage
	if json.Unmarshal(head.Body, &said) != nil {
		return
	}
	for _, name := range []string{"stackTrace", "stack_trace", "stack", "trace"} {
		delete(said, name)
	}
	body, err := json.Marshal(said)
	if err != nil {
		return
	}
	head.Body, head.ContentLength = body, -1
}
