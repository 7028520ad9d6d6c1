package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Errors of Invoke. An adapter wraps exactly one of them, so that the agent
// can tell the gateway how the attempt ended. People read them in logs and
// answers, without the name of this package.
var (
	// ErrNotStarted says that the function provably saw nothing of the
	// call, so that another instance may run it.
	ErrNotStarted = errors.New("the function did not see the call")
	// ErrFunctionLost says that the function broke off during the call.
	ErrFunctionLost = errors.New("the function broke off the call")
	// ErrBadAnswer says that the function answered in a way that its
	// protocol does not allow.
	ErrBadAnswer = errors.New("the function's answer is not valid")
	// ErrBodyTooLarge says that the function saw nothing of the call, and that no
	// instance of it will: its protocol takes no body that large.
	ErrBodyTooLarge = errors.New("the call's body is too large")
	// ErrUnsendable says that the function saw nothing of the call, and that no instance of it
	// will: its protocol has no such request.
	ErrUnsendable = errors.New("the call cannot be sent to the function")
	// ErrOtherProtocol says that the function broke off the call, probably because it speaks another
	// protocol than the call's. It goes on.
	ErrOtherProtocol = errors.New("the function does not speak the call's protocol")
	// ErrTimedOut says that the call's deadline passed.
	ErrTimedOut = errors.New("the call ran out of time")
	// ErrNotTaken says that the call's deadline passed while it waited for the agent, or for memory of
	// it, or that the function closed the connection before it took the call. The function saw nothing
	// of it, and goes on. Another instance, or a later try, may take it.
	ErrNotTaken = errors.New("the instance did not take the call")
	// ErrTooLate says that the call's deadline passed, although the function could have had it:
	// its body did not come in time, or no core of its node was free. The function saw nothing of it.
	ErrTooLate = errors.New("the call ran out of time before the function saw it")
)

// Call is one call for the function.
type Call struct {
	// ID is the invocation's id as 32 hexadecimal digits.
	ID string
	// Attempt counts from 1.
	Attempt int
	// Method and RequestURI (path and query) are the client's, without the
	// gateway's own prefix.
	Method     string
	RequestURI string
	Host       string
	// Header holds end-to-end headers only.
	Header invocation.Fields
	// ContentLength of Body in bytes; -1 if unknown.
	ContentLength int64
	// Body is never nil. Its Read returns when the context of Invoke ends. Invoke may
	// return while one last Read is under way. A body in memory is best a *bytes.Reader.
	// An error other than io.EOF says that the client's request was cut.
	Body io.Reader
	// Trailer has the names of the trailers that the client announced; nil if it announced
	// none. The Read of Body that returns io.EOF sets their values. A body of known length has
	// no trailers.
	Trailer http.Header
	// ExpectContinue says that the client waits for an answer with status 100 before it sends
	// Body, though not for ever.
	ExpectContinue bool
	// Upgrade lists the protocols that the client asks to switch to, as its Upgrade header
	// does; empty if it asks for none. Such a call has ContentLength 0. If the function
	// switches, Body is what the client sends in the new protocol.
	Upgrade string
	// Deadline is when the call times out. The context of Invoke ends then
	// too.
	Deadline time.Time
}

// Head is the beginning of an answer, or an interim answer.
type Head struct {
	// Status is an HTTP status code, 100 to 599. Below 200 the answer is an interim one, which
	// has a Header and nothing else, and 100 comes only to a call with ExpectContinue. With
	// 101 the function switches protocols: there is no other answer, and what is written
	// after it is what the function sends in the new protocol.
	Status int
	// Header holds end-to-end headers only.
	Header invocation.Fields
	// ContentLength in bytes; -1 if unknown. With the answer to a HEAD it is
	// what the answer to a GET would have. Header has no Content-Length.
	ContentLength int64
	// Trailer has the names of the trailers that the function announced. Others may come.
	Trailer []string
	// Upgrade is the protocol that the function switches to with status 101.
	Upgrade string
	// FunctionError is the type of the error that the function reported
	// through its protocol; empty if it reported none.
	FunctionError string
}

// ResultWriter takes an answer as it comes: any number of interim heads, one head, then the
// body in any number of writes, then at most one set of trailers. Write must not keep its argument;
// a head and trailers stay as they are.
type ResultWriter interface {
	WriteHead(Head) error
	io.Writer
	WriteTrailer(invocation.Fields) error
}

// Adapter speaks one function's protocol.
type Adapter interface {
	// WaitReady returns when the function can be called, or with the reason why it never can;
	// it returns early when ctx ends.
	WaitReady(ctx context.Context) error
	// Invoke hands one call to the function and its answer to w. It returns
	// nil when the answer is complete, w's own error if a write failed, and
	// otherwise an error that wraps one of this package's errors. It never
	// repeats a request. Up to the function's concurrency calls may run at
	// a time.
	Invoke(ctx context.Context, call *Call, w ResultWriter) error
}

// Ended is the error of a call that the function may have seen and whose context has
// ended: the context's cause if that is an ErrFunctionLost, ErrTimedOut if the deadline
// passed, and otherwise ErrFunctionLost, since its outcome is unknown.
func Ended(ctx context.Context, call *Call) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrFunctionLost) {
		return cause
	}
	if IsLate(ctx, call) {
		return fmt.Errorf("%w: %w", ErrTimedOut, cause)
	}
	return abandonedError{cause}
}

// IsLate reports whether the deadline of a call with this context has passed.
func IsLate(ctx context.Context, call *Call) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || !time.Now().Before(call.Deadline)
}

// abandonedError is ErrFunctionLost without blaming the function.
type abandonedError struct{ cause error }

func (e abandonedError) Error() string   { return "the call was given up: " + e.cause.Error() }
func (e abandonedError) Unwrap() []error { return []error{ErrFunctionLost, e.cause} }

// NotReady is the error of a function that was not ready when ctx ended. It wraps the
// cause of ctx, and names it only where a person needs to know it.
func NotReady(ctx context.Context, why string) error {
	return notReadyError{why: why, cause: context.Cause(ctx)}
}

type notReadyError struct {
	why   string
	cause error
}

func (e notReadyError) Error() string {
	if errors.Is(e.cause, context.DeadlineExceeded) {
		return e.why + "; if it needs more time, raise startupTimeout"
	}
	return e.why
}

func (e notReadyError) Unwrap() error { return e.cause }
