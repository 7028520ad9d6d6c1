package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// streamMemory is the memory of a body that is streamed, of a request or of an answer: the
	// bytes that were read and those that wait to be sent. One of each is that of a connection
	// that switches to another protocol.
	streamMemory = 128 << 10
	// requestTrailers is as much as the server reads of the trailers of a request by HTTP/2. By
	// HTTP/1.1 they follow a body that is streamed, and are less than 4 KiB.
	requestTrailers = 64 << 10
	// ordinaryHead is the size of the target and headers of a call up to which they do not
	// count as memory, and ordinaryAnswer that of an answer with its body: any call may have as
	// much, and there are at most MaxInvocations.
	ordinaryHead   = 4 << 10
	ordinaryAnswer = 4 << 10
	// headerMemory is what a header or the name of a trailer takes besides its name and its value, as
	// it came and as the other side sees it.
	headerMemory = 100
	// leastBodyMemory is room for any one call that the server reads: a body that is
	// handed on as it comes, and the up to 68 KiB of a head, in headers or names of trailers of
	// 4 bytes each at their least.
	leastBodyMemory = 2 << 20
	// maxHops is how many functions may call each other in a row.
	maxHops = 16
)

// Callers identifies callers, and says whether they may call and how much. auth.Callers
// implements it.
type Callers interface {
	// Authenticate fails with an error of package auth. The function need
	// not exist.
	Authenticate(h http.Header, key invocation.FunctionKey) (auth.Caller, error)
	// Limits are what a namespace may use of this gateway.
	Limits(namespace string) admission.Limits
	// Permits reports whether functions of a namespace may have a host of their own.
	Permits(namespace, host string) bool
}

// everybody admits every caller without limits.
type everybody struct{}

func (everybody) Authenticate(http.Header, invocation.FunctionKey) (auth.Caller, error) {
	return auth.Caller{}, nil
}

func (everybody) Limits(string) admission.Limits { return admission.Limits{} }

func (everybody) Permits(string, string) bool { return false }

// denied answers a caller that may not call.
func denied(err error) problem {
	const realm = `Bearer realm="windlass"`
	p := newProblem(problems.CredentialsMissing, err.Error())
	p.challenge = realm
	switch {
	case errors.Is(err, auth.ErrInvalid):
		p = newProblem(problems.CredentialsInvalid, err.Error())
		p.challenge = realm + `, error="invalid_token"`
	case errors.Is(err, auth.ErrNotAllowed):
		p = newProblem(problems.NotAllowed, err.Error())
	case errors.Is(err, auth.ErrUnavailable):
		p = newProblem(problems.CredentialsUnchecked, err.Error())
	}
	return p
}

// reservation is what a call uses of the gateway.
type reservation struct {
	namespace string
	bytes     int64
}

// admitter decides which calls are admitted, and counts their use of the gateway, including
// calls whose body is still being read.
type admitter struct {
	capacity admission.Capacity

	mu      sync.Mutex // guards limiter
	limiter *admission.Limiter
}

func newAdmitter(capacity admission.Capacity) *admitter {
	return &admitter{capacity: capacity, limiter: admission.New(capacity)}
}

// admit admits a call, or says why not. An admitted call must be freed.
func (a *admitter) admit(r reservation, limits admission.Limits) *problem {
	a.mu.Lock()
	decision := a.limiter.Admit(time.Now(), r.namespace, limits, r.bytes)
	a.mu.Unlock()
	if decision.Reason == admission.Admitted {
		return nil
	}
	p := a.overLimit(decision.Reason, r.namespace, limits)
	p.retryAfter = decision.RetryAfter
	return &p
}

// overLimit is the answer to a call that is over a limit.
func (a *admitter) overLimit(reason admission.Reason, namespace string, limits admission.Limits) problem {
	own := func(reason, format string, args ...any) problem {
		return newProblem(reason, fmt.Sprintf(format, args...))
	}
	switch reason {
	case admission.RateReached:
		return own(problems.NamespaceRate, "the namespace %s may make %.4g calls a second at this gateway", namespace, limits.Rate)
	case admission.InFlightReached:
		return own(problems.NamespaceCalls, "the namespace %s may have %d calls at a time at this gateway", namespace, limits.InFlight)
	case admission.BytesReached:
		return own(problems.NamespaceBodies, "the namespace %s may have %d bytes of bodies at a time in this gateway", namespace, limits.Bytes)
	case admission.OverShare:
		return own(problems.NamespaceShare, "this gateway is nearly full, and the namespace %s has its share of it already", namespace)
	}
	return overloaded(a.capacity.Calls, a.capacity.Bytes)
}

// grow lets an admitted call use more memory, or says why not.
func (a *admitter) grow(more reservation, limits admission.Limits) *problem {
	a.mu.Lock()
	decision := a.limiter.Grow(more.namespace, limits, more.bytes)
	a.mu.Unlock()
	if decision.Reason == admission.Admitted {
		return nil
	}
	p := a.overLimit(decision.Reason, more.namespace, limits)
	p.Detail = "there was no room for the function's answer: " + p.Detail
	return &p
}

func (a *admitter) free(r reservation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limiter.Release(time.Now(), r.namespace, r.bytes)
}

// held is the present use.
func (a *admitter) held() admission.Capacity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limiter.Held()
}

// dropNamespace drops the usage of a namespace without functions.
func (a *admitter) dropNamespace(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limiter.DropNamespace(namespace)
}

// bodyMemory is how much memory the body of a request will use here. A body that is larger
// than a small one is streamed, and so is what follows a switch to another protocol. The trailers
// that were announced may follow it.
func bodyMemory(r *http.Request) (n int64) {
	if r.ProtoMajor == 2 && r.Trailer != nil {
		n = requestTrailers
	}
	if r.ContentLength < 0 || r.ContentLength > smallBody || upgradeOf(r) != "" {
		return n + streamMemory
	}
	return n + r.ContentLength
}

// answerMemory is how much memory an answer will use here beyond that of an ordinary one, until
// its client has read it, without its trailers.
func answerMemory(head *callwire.Head) int64 {
	n := len(head.Body) + len(head.FunctionError) + fieldsMemory(head.Header)
	for _, name := range head.Trailer {
		n += len(name) + headerMemory
	}
	n = max(0, n-ordinaryAnswer)
	if !head.Whole {
		n += streamMemory
	}
	return int64(n)
}

// trailerMemory is how much memory the trailers of an answer use beyond those of an ordinary one.
func trailerMemory(trailers []callwire.Field) int64 {
	return int64(max(0, fieldsMemory(trailers)-ordinaryAnswer))
}

// fieldsMemory is how much memory headers or trailers use.
func fieldsMemory(fields []callwire.Field) (n int) {
	for _, f := range fields {
		n += len(f.Name) + len(f.Value) + headerMemory
	}
	return n
}

// roomForAnswer counts the memory of an answer that has come, or of its trailers, or says why there is
// none. It is given back with the rest of the call's.
func (g *Gateway) roomForAnswer(c *call, bytes int64) *problem {
	if bytes == 0 {
		return nil
	}
	return c.reservation.grow(bytes, g.deps.Callers.Limits(c.function.Namespace))
}

// headMemory is how much memory the request line, the headers and the names of trailers of a request use
// beyond those of an ordinary one.
func headMemory(r *http.Request) int64 {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name := range r.Trailer {
		n += len(name) + headerMemory
	}
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + headerMemory
		}
	}
	return int64(max(0, n-ordinaryHead))
}
