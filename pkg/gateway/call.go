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
	life

	uri      string // path and query behind the function's prefix
	origin   origin
	scope    tracing.Scope
	request  *http.Request
	body     requestBody
	small    []byte // the whole body, if it was read beforehand
	whole    bool   // small is the whole body
	admitted time.Time
	stay     *stay
	client   client
}

// offer is a ticket and where it goes.
type offer struct {
	ticket *agentwire.Ticket
	slot   ownership.Slot
	// again says that it is not the call's first one.
	again bool
}

// offer is what its scheduler gets, unless the call does not wait.
func (c *call) offer() (o offer, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	says, waits := c.invocation.Ticket()
	if !waits {
		return offer{}, false
	}
	request := c.ride(says.Attempt)
	if request != nil {
		c.invocation.Rides()
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

// maxRide is the largest request, in bytes, that rides in a ticket.
const maxRide = 16 << 10

// ride is the request as it rides in a ticket, so that the instance may start
// without a claim; nil if the function must not run twice or the body is large. The caller
// holds the lock.
func (c *call) ride(attempt int) *agentwire.Granted {
	if !c.to.unit.Spec.Calls.MayRepeat() || !c.whole || len(c.small) > maxRide {
		return nil
	}
	request := c.handOver(c.to.unit, attempt)
	if proto.Size(request) > maxRide {
		return nil
	}
	return request
}

// handOver is the request as an instance of a unit gets it for an attempt.
func (c *call) handOver(unit *v1alpha1.Function, attempt int) *agentwire.Granted {
	return &agentwire.Granted{
		Attempt:       uint32(attempt),
		Method:        c.request.Method,
		RequestUri:    c.uri,
		Host:          c.request.Host,
		Headers:       c.inTrace(requestHeaders(c.request, c.id, c.origin), attempt),
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

// cancel tells the instance that has the call to stop.
func (c *call) cancel() {
	if a := c.present(); a != nil {
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

// calls are those that wait or run.
type calls struct {
	most int

	mu   sync.Mutex // guards everything below
	byID map[invocation.ID]*call
}

func newCalls(most int) *calls { return &calls{most: most, byID: make(map[invocation.ID]*call)} }

// keep takes a call in; false if there is no room for it.
func (cs *calls) keep(c *call) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.byID) >= cs.most {
		return false
	}
	cs.byID[c.id] = c
	c.stay.enter()
	return true
}

// forget drops a call that is over.
func (cs *calls) forget(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.byID[c.id] == c {
		delete(cs.byID, c.id)
		c.stay.leave()
	}
}

// find returns the call that waits or runs under an id, or nil.
func (cs *calls) find(id invocation.ID) *call {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byID[id]
}

// all are the calls that wait or run now.
func (cs *calls) all() []*call {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Collect(maps.Values(cs.byID))
}

// stay is how long a call is held against its namespace: while its handler runs or
// while it is in the table, whichever is longer.
type stay struct {
	holders atomic.Int32
	over    func()
}

// newStay is the stay of a handler. When it is over, it calls over once.
func newStay(over func()) *stay {
	s := &stay{over: over}
	s.holders.Store(1)
	return s
}

// enter adds the table.
func (s *stay) enter() { s.holders.Add(1) }

// leave is for each who holds it, once.
func (s *stay) leave() {
	if s.holders.Add(-1) == 0 {
		s.over()
	}
}
