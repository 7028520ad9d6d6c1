package gateway

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/tracing"
)

// errDetached is returned to whoever answers a call that nobody waits for.
var errDetached = errors.New("gateway: the client is gone")

// errNonsense is the error of a message that has no place where it came.
var errNonsense = errors.New("the instance sent a message that makes no sense here")

// call is one client's call: its request, and the one answer to it. The HTTP
// handler's goroutine waits on ended while the goroutine of the attempt reads
// the request and writes what the function answers. What Windlass answers itself
// is stored, by whichever goroutine, and written by the handler's.
type call struct {
	id       invoke.ID
	function *v1alpha1.Function
	slot     ownership.Slot
	uri      string // path and query behind the function's prefix
	origin   origin
	scope    tracing.Scope
	request  *http.Request
	body     requestBody
	small    []byte // the whole body, if it was read beforehand
	whole    bool   // small is the whole body
	admitted time.Time
	stay     *stay
	// series count the call; nil if it was not admitted, or nobody counts.
	series *functionSeries

	// writing guards w and rc's deadline for writing, which are of the attempt
	// until the call has ended, and of the handler from then on. It is held
	// while the client takes its time: nobody waits for it but these two.
	writing sync.Mutex
	w       http.ResponseWriter
	rc      *http.ResponseController
	// left is how much of the body is still to be written; -1 if that is unknown.
	left  int64
	ended chan struct{}

	mu     sync.Mutex // never held while anything waits
	times  timeline.Timeline
	cold   bool // it was the first of its instance
	phase  answerPhase
	status int
	said   invoke.Executed
	reason string // of the problem that is the answer
	// problem is the answer if it is not the function's.
	problem *problem
	// attempt is the last one; nil before the first.
	attempt *attempt
	// tries are the attempts before it that did not end the call, and lost is why the
	// last one of them that may have run was broken off; empty if none may have.
	tries []try
	lost  string
}

// maxRide is the largest request, in bytes, that rides in a ticket.
const maxRide = 16 << 10

// handOver is the request as an instance gets it for an attempt.
func (c *call) handOver(attempt int) *wirev1.Granted {
	return &wirev1.Granted{
		Attempt:       uint32(attempt),
		Method:        c.request.Method,
		RequestUri:    c.uri,
		Host:          c.request.Host,
		Headers:       c.inTrace(requestHeaders(c.request, c), attempt),
		ContentLength: c.request.ContentLength,
		WholeBody:     c.small,
		Whole:         c.whole,
		RemainingNs:   int64(c.function.Spec.Timeout.Duration),
	}
}

// ride is the request as it rides in a ticket, so that the instance may start
// without a claim; nil if the function must not run twice or the body is large.
func (c *call) ride(attempt int) *wirev1.Granted {
	if !c.function.Spec.Idempotent || !c.whole || len(c.small) > maxRide {
		return nil
	}
	request := c.handOver(attempt)
	if proto.Size(request) > maxRide {
		return nil
	}
	return request
}

// heldBy says which attempt the call is in now.
func (c *call) heldBy(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempt = a
}

// cancel ends the attempt that the call is in, if any.
func (c *call) cancel() {
	c.mu.Lock()
	a := c.attempt
	c.mu.Unlock()
	if a != nil {
		// It waits for an instance that reads nothing, and the client's
		// connection should not.
		go a.cancel()
	}
}
