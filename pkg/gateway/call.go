package gateway

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// call is one client's call: its request, its life, and the one answer to it. Only the HTTP
// handler's goroutine writes to the client. It waits for changed, while the reader of the
// instance's connection stores what the function answers, and any goroutine what Windlass answers
// itself.
type call struct {
	callState

	// waiting is the call's place in its pool, which pool is while it waits there.
	waiting core.Waiting[*call]
	pool    atomic.Pointer[pool]
	// upgrade lists the protocols that the client asks to switch to; empty if it asks for none.
	upgrade string

	uri   string // path and query behind the function's prefix
	scope tracing.Scope
	// headers are those that the function sees, without what an attempt adds. They are made before
	// the call waits: later an instance would wait for them.
	headers []callwire.Field
	// trailers are those that the client has announced. They are read here, too: the request's map
	// changes while an attempt reads the body.
	trailers []string
	// whole says that small is the whole body, which is read beforehand.
	whole       bool
	small       []byte
	reservation reservationRef
	client      client
}

// sendTicket passes the ticket of a waiting call to send, which waits for nothing and reports
// whether the ticket is on its way to the scheduler of a slot. The call learns of that before any
// answer of that scheduler.
func (c *call) sendTicket(send func(ownership.Slot, *agentwire.Ticket) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	says, waits := c.invocation.Ticket(time.Now())
	if !waits {
		return
	}
	sent := send(c.to.slot(), &agentwire.Ticket{
		InvocationId: c.id[:],
		FunctionUid:  string(c.to.unit.UID),
		Token:        says.Token[:],
		WaitedNs:     int64(says.Waited),
		RemainingNs:  int64(says.Remaining),
		Lent:         !c.to.unit.Spec.Calls.Limited(),
		Again:        says.Again,
		Trace:        c.scope.Wire(),
	})
	if sent {
		c.invocation.TicketSent()
	}
}

// wireCall is the call as an instance of a unit gets it for an attempt.
func (c *call) wireCall(unit *v1alpha1.Function, attempt int) callwire.Call {
	r := c.client.request
	message := callwire.Call{
		Invocation: c.id, Attempt: attempt, Remaining: unit.Spec.Template.Timeout.Duration,
		Method: r.Method, RequestURI: c.uri, Host: r.Host,
		Header:        c.headersOf(attempt),
		ContentLength: r.ContentLength, Whole: c.whole, Body: c.small, Upgrade: c.upgrade,
		ExpectContinue: c.expectsContinue(),
	}
	message.CoreWait = c.waitedForCores()
	if !c.whole {
		message.Trailer = c.trailers
	}
	return message
}

// expectsContinue reports whether the client waits for 100 Continue before it sends its body.
func (c *call) expectsContinue() bool {
	r := c.client.request
	return !c.whole && c.upgrade == "" && r.ProtoAtLeast(1, 1) && httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue")
}

// inTrace leaves out what clients say of a trace, if the call is recorded: the state too, if it belongs
// to no trace. What a client sends otherwise is the function's.
func (c *call) inTrace(headers []callwire.Field) []callwire.Field {
	if !c.scope.Recorded() {
		return headers
	}
	return slices.DeleteFunc(headers, func(h callwire.Field) bool {
		return h.Name == tracing.HeaderParent || h.Name == tracing.HeaderState && !c.scope.Follows()
	})
}

// headersOf are the headers of an attempt. If the call is recorded, the span of the attempt's
// execution is the parent of what the function does.
func (c *call) headersOf(attempt int) []callwire.Field {
	if !c.scope.Recorded() {
		return c.headers
	}
	return append(slices.Clip(c.headers), callwire.Field{Name: tracing.HeaderParent, Value: c.scope.Parent(attempt)})
}

// cancel asks the instance that runs the call to stop.
func (c *call) cancel() {
	if a := c.currentAttempt(); a != nil {
		a.cancel()
	}
}

// giveUpIfItWaits asks for the call if it waits for a core.
func (c *call) giveUpIfItWaits() {
	if a := c.currentAttempt(); a != nil && a.waitsLong.Load() {
		a.conn.askToGiveUp(a.wire)
		a.conn.frames.FlushLater()
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
	admitter *admitter

	mu      sync.Mutex // guards everything below
	holders int
	held    reservation
}

// addRef adds a reference.
func (s *reservationRef) addRef() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders++
}

// grow makes the reservation larger, or says why not. It does nothing without a holder.
func (s *reservationRef) grow(bytes int64, limits admission.Limits) *problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders == 0 {
		return nil
	}
	p := s.admitter.grow(reservation{s.held.namespace, bytes}, limits)
	if p == nil {
		s.held.bytes += bytes
	}
	return p
}

// dropRef drops a reference. Each holder calls it once.
func (s *reservationRef) dropRef() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders--; s.holders == 0 {
		s.admitter.free(s.held)
	}
}
