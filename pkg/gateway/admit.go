package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// streamMemory is what a body takes that is handed on as it comes: what was
	// read of it, and what waits to be sent.
	streamMemory = 128 << 10
	// ordinaryHead is what the target and the headers of a call may take without being
	// counted as memory: any call may have as much, and there are at most MaxInvocations.
	ordinaryHead = 4 << 10
	// headerMemory is what a header takes besides its name and its value.
	headerMemory = 100
	// leastBodyMemory is room for any one call that the server reads: a body that is
	// handed on as it comes, and the up to 68 KiB of a head, in headers of 4 bytes each
	// at their least.
	leastBodyMemory = 2 << 20
	// maxDepth is how many functions may call each other in a row.
	maxDepth = 16
)

// Callers tells who calls, whether they may, and how much. It is implemented by
// callers.Callers.
type Callers interface {
	// Authenticate fails with an error of package auth. The function need
	// not exist.
	Authenticate(h http.Header, key invocation.FunctionKey) (auth.Caller, error)
	// Limits are what a namespace may use of this gateway.
	Limits(namespace string) admission.Limits
	// Permits tells whether functions of a namespace may have a host of their own.
	Permits(namespace, host string) bool
}

// everybody may call, as much as there is room for.
type everybody struct{}

func (everybody) Authenticate(http.Header, invocation.FunctionKey) (auth.Caller, error) {
	return auth.Caller{}, nil
}

func (everybody) Limits(string) admission.Limits { return admission.Limits{} }

func (everybody) Permits(string, string) bool { return false }

// denied is the answer to a caller who is not let through.
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

// hold is what a call takes of the gateway.
type hold struct {
	namespace string
	bytes     int64
}

// door counts what is held of the gateway, also by calls whose body is being
// read, which are not in the table yet.
type door struct {
	capacity admission.Capacity

	mu   sync.Mutex // guards the book
	book *admission.Book
}

func newDoor(capacity admission.Capacity) *door {
	return &door{capacity: capacity, book: admission.New(capacity)}
}

// enter takes a call in, or says why not. What was taken in must leave.
func (d *door) enter(h hold, limits admission.Limits) *problem {
	d.mu.Lock()
	verdict := d.book.Enter(time.Now(), h.namespace, limits, h.bytes)
	d.mu.Unlock()
	if verdict.Reason == admission.Admitted {
		return nil
	}
	p := d.crowded(verdict.Reason, h.namespace, limits)
	p.retryAfter = verdict.RetryAfter
	return &p
}

// crowded is the answer to a call that has no room here.
func (d *door) crowded(reason admission.Reason, namespace string, limits admission.Limits) problem {
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
	return overloaded(d.capacity.Calls, d.capacity.Bytes)
}

func (d *door) leave(h hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.book.Leave(time.Now(), h.namespace, h.bytes)
}

// held is what is in use now.
func (d *door) held() admission.Capacity {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.book.Held()
}

// forget drops what is remembered of a namespace without functions.
func (d *door) forget(namespace string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.book.Forget(namespace)
}

// bodyMemory is how much memory the body of a request will take here. What is
// larger than a small body is handed on as it comes.
func bodyMemory(r *http.Request) int64 {
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		return streamMemory
	}
	return r.ContentLength
}

// headMemory is how much memory the target and the headers of a request take here
// beyond those of an ordinary one.
func headMemory(r *http.Request) int64 {
	n := len(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + headerMemory
		}
	}
	return int64(max(0, n-ordinaryHead))
}
