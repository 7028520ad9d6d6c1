package gateway

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// call is one client's call: its request, its life, and the one answer to it. The HTTP
// handler's goroutine waits on ended while the goroutine of the attempt reads the request
// and writes what the function answers. What Windlass answers itself is stored, by any
// goroutine, and written by the handler's.
type call struct {
	callState

	uri         string // path and query behind the function's prefix
	chain       callChain
	scope       tracing.Scope
	request     *http.Request
	body        requestBody
	small       []byte // the whole body, if it was read beforehand
	whole       bool   // small is the whole body
	admitted    time.Time
	reservation *reservationRef
	client      client
}

// offer is a ticket and where it goes.
type offer struct {
	ticket *agentwire.Ticket
	slot   ownership.Slot
	// again says that it is not the call's first one.
	again bool
}

// nextOffer is the offer of a waiting call; false if the call does not wait.
func (c *call) nextOffer() (o offer, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	says, waits := c.invocation.Ticket()
	if !waits {
		return offer{}, false
	}
	request := c.inlineRequest(says.Attempt)
	if request != nil {
		c.invocation.RequestInlined()
	}
	return offer{slot: c.to.slot, again: says.Again, ticket: &agentwire.Ticket{
		InvocationId: c.id[:],
		FunctionUid:  string(c.to.unit.UID),
		Token:        says.Token[:],
		WaitedNs:     int64(says.Waited),
		RemainingNs:  int64(says.Remaining),
		Request:      request,
		Trace:        c.scope.Wire(),
	}}, true
}

// maxInlineRequest is the largest request, in bytes, that a ticket carries.
const maxInlineRequest = 16 << 10

// inlineRequest is the request for the ticket, so that the instance may start without a claim;
// nil if the function must not run twice or the body is large. The caller holds the lock.
func (c *call) inlineRequest(attempt int) *agentwire.Granted {
	if !c.to.unit.Spec.Calls.MayRepeat() || !c.whole || len(c.small) > maxInlineRequest {
		return nil
	}
	request := c.grantMessage(c.to.unit, attempt)
	if proto.Size(request) > maxInlineRequest {
		return nil
	}
	return request
}

// grantMessage is the request as an instance of a unit gets it for an attempt.
func (c *call) grantMessage(unit *v1alpha1.Function, attempt int) *agentwire.Granted {
	return &agentwire.Granted{
		Attempt:       uint32(attempt),
		Method:        c.request.Method,
		RequestUri:    c.uri,
		Host:          c.request.Host,
		Headers:       c.inTrace(requestHeaders(c.request, c.id, c.chain), attempt),
		ContentLength: c.request.ContentLength,
		WholeBody:     c.small,
		Whole:         c.whole,
		RemainingNs:   int64(unit.Spec.Template.Timeout.Duration),
	}
}

// inTrace makes the span of an attempt's execution the parent of what the function
// does, if the call is recorded; what a client sent otherwise is the function's. A
// state that belongs to no trace is left out.
func (c *call) inTrace(headers []*agentwire.Header, attempt int) []*agentwire.Header {
	if !c.scope.Recorded() {
		return headers
	}
	headers = slices.DeleteFunc(headers, func(h *agentwire.Header) bool {
		return h.GetName() == tracing.HeaderParent || h.GetName() == tracing.HeaderState && !c.scope.Follows()
	})
	return append(headers, &agentwire.Header{Name: tracing.HeaderParent, Value: []byte(c.scope.Parent(attempt))})
}

// cancel asks the instance that runs the call to stop.
func (c *call) cancel() {
	if a := c.currentAttempt(); a != nil {
		// It waits for an instance that reads nothing, and the client's
		// connection should not.
		go a.cancel()
	}
}

// traceID is the id of the call's trace if that is recorded, and otherwise empty.
func (c *call) traceID() string {
	if !c.scope.Recorded() {
		return ""
	}
	return c.scope.TraceID()
}

// calls are the calls that wait or run.
type calls struct {
	limit int

	mu   sync.Mutex // guards everything below
	byID map[invocation.ID]*call
}

func newCalls(most int) *calls { return &calls{limit: most, byID: make(map[invocation.ID]*call)} }

// add adds a call; false if there are too many.
func (cs *calls) add(c *call) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.byID) >= cs.limit {
		return false
	}
	cs.byID[c.id] = c
	c.reservation.addRef()
	return true
}

// delete removes a call that is over.
func (cs *calls) delete(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.byID[c.id] == c {
		delete(cs.byID, c.id)
		c.reservation.dropRef()
	}
}

// find returns the call that waits or runs under an id, or nil.
func (cs *calls) find(id invocation.ID) *call {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byID[id]
}

// snapshot are the calls that wait or run now.
func (cs *calls) snapshot() []*call {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Collect(maps.Values(cs.byID))
}

// reservationRef keeps a call's reservation while its handler runs or while it is among the
// calls, whichever is longer.
type reservationRef struct {
	holders atomic.Int32
	free    func()
}

// newReservationRef is the reference of a handler. Dropping the last reference calls free
// once.
func newReservationRef(over func()) *reservationRef {
	s := &reservationRef{free: over}
	s.holders.Store(1)
	return s
}

// addRef adds a reference.
func (s *reservationRef) addRef() { s.holders.Add(1) }

// dropRef drops a reference. Each holder calls it once.
func (s *reservationRef) dropRef() {
	if s.holders.Add(-1) == 0 {
		s.free()
	}
}
