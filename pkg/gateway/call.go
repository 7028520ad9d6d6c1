package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/tracing"
)

// errDetached is returned for what would be sent to a client that does not wait for it.
var errDetached = errors.New("gateway: the client is gone")

// call is one client's call: its request, and the one answer to it. What is decided
// about it is its life's (core.Invocation). The HTTP handler's goroutine waits on ended
// while the goroutine of the attempt reads the request and writes what the function
// answers. What Windlass answers itself is stored, by any goroutine, and written by the
// handler's.
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
	// maxQueueTime is how long it may wait.
	maxQueueTime time.Duration
	stay         *stay
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

	mu     sync.Mutex // guards everything below; never held while anything waits
	life   *core.Invocation
	times  timeline.Timeline
	cold   bool // it was the first of its instance
	status int
	said   invoke.Executed
	reason string // of the problem that is the answer
	// problem is the answer if it is not the function's.
	problem *problem
	// attempt is the last one; nil before the first.
	attempt *attempt
	// tries are the attempts before it that did not end the call.
	tries []try
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

// ticket is what its scheduler gets, unless the call does not wait. Again says that it is
// not the first one.
func (c *call) ticket() (t *wirev1.Ticket, again, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	life, waits := c.life.Ticket()
	if !waits {
		return nil, false, false
	}
	request := c.ride(life.Attempt)
	if request != nil {
		c.life.Rides()
	}
	return &wirev1.Ticket{
		InvocationId: c.id[:],
		FunctionUid:  string(c.function.UID),
		Token:        life.Token[:],
		WaitedNs:     int64(life.Waited),
		RemainingNs:  int64(life.Remaining),
		Request:      request,
		Trace:        c.scope.Wire(),
	}, life.Again, true
}

// observe is what is seen of its ticket and its instance, and whether an audit may find
// something.
func (c *call) observe(now time.Time, moved bool) (seen core.Observed, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen.Moved = moved
	seen.Silent = c.life.Phase() == core.Claimed && c.attempt.stream.Context().Err() != nil
	return seen, seen.Silent || c.life.Due(now, moved)
}

// audit compares what is believed of the call with what is seen.
func (c *call) audit(now time.Time, seen core.Observed) core.Decision {
	var fresh invoke.Token
	if seen.Silent {
		fresh = invoke.NewToken()
	}
	return c.decide(func(v *core.Invocation) core.Decision {
		claimed := v.Phase() == core.Claimed
		d := v.Audit(now, seen, fresh)
		if a := c.attempt; claimed && d.Offer {
			c.requeued(try{number: a.number, cid: a.cid, from: a.claimed, until: now, ran: true, why: core.InstanceLost})
		}
		return d
	}, problem{})
}

// cancel tells the instance that has the call to stop.
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

// event is what happens to a call.
type event func(*core.Invocation) core.Decision

// decide lets an event happen to a call and returns what follows; carryOut does it. If
// the call fails, p says why, unless it was late.
func (c *call) decide(e event, p problem) core.Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	unanswered := !c.life.Answer().Final()
	d := e(c.life)
	if d.Fail {
		c.failed(p, d.Verdict)
	}
	if unanswered && c.life.Answer().Final() {
		c.end()
	}
	return d
}

// failed stores the problem that is the answer. A call that was queued again, because
// the instance that had it was lost, is answered with that loss. The caller holds the
// lock.
func (c *call) failed(p problem, v core.Verdict) {
	switch v.Cause {
	case core.CauseLate:
		p = newProblem(http.StatusGatewayTimeout, v.Executed, reasonQueueTime,
			fmt.Sprintf("no instance took the call within %v; see windlass describe %s", c.maxQueueTime, c.function.Key()))
	case core.CauseDeleted:
		p = newProblem(http.StatusNotFound, v.Executed, reasonDeleted, "the function was deleted while the call waited")
	case core.CauseOverran:
		p = timedOut(c.function)
	case core.CauseSilent:
		p = newProblem(http.StatusBadGateway, v.Executed, reasonInstance, "the instance was lost during the call")
	}
	p.Executed, p.Attempt = v.Executed, v.Attempt
	if v.Lost != "" {
		p = newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, v.Lost,
			"the call was broken off and could not run again: "+p.Detail)
	}
	p.InvocationID = c.id.String()
	p.Function = c.function.Key().String()
	c.status, c.said, c.reason = p.Status, p.Executed, p.Reason
	c.problem = &p
}

// end wakes the handler, which has the ResponseWriter from now on. The caller holds the
// lock.
func (c *call) end() {
	c.times.End(time.Now())
	close(c.ended)
}

// answer is what the client has.
func (c *call) answer() core.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life.Answer()
}

// answered tells whether nobody waits for an answer any more.
func (c *call) answered() bool { return c.answer().Final() }

// broken tells whether the client has no whole answer, and will have none.
func (c *call) broken() bool {
	a := c.answer()
	return a == core.AnswerCut || a == core.AnswerUnheard
}
