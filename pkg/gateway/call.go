package gateway

import (
	"errors"
	"net/http"
	"strconv"
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
// the request and writes the answer.
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
	// series count the call; nil if it was not admitted, or nobody counts.
	series *functionSeries

	mu     sync.Mutex
	times  timeline.Timeline
	cold   bool // it was the first of its instance
	w      http.ResponseWriter
	rc     *http.ResponseController
	phase  answerPhase
	status int
	said   invoke.Executed
	reason string // of the problem that was the answer
	ended  chan struct{}
	// attempt is the last one; nil before the first.
	attempt *attempt
	// tries are the attempts before it that did not end the call.
	tries []try
}

// answerPhase is how far the answer has come.
type answerPhase int

const (
	answerNone     answerPhase = iota // nothing was sent
	answerHead                        // the head was sent, the body follows
	answerComplete                    // all was sent
	answerCut                         // the head was sent and the rest never will be
	answerDetached                    // the client is gone
)

// final says that the phase will not change any more.
func (p answerPhase) final() bool { return p >= answerComplete }

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

// fail answers with a problem, or cuts off an answer that has begun.
func (c *call) fail(p problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase.final():
		return
	case c.phase == answerHead:
		c.end(answerCut)
		return
	}
	p.InvocationID = c.id.String()
	p.Function = c.function.Key().String()
	c.status, c.said, c.reason = p.Status, p.Executed, p.Reason
	c.closeIfUnread()
	p.write(c.w)
	c.end(answerComplete)
}

// head sends the head of the function's answer, and its whole body if it came
// with it. A client that has not taken the answer by the given time is given up:
// as long as it is being written to, it holds an instance.
func (c *call) head(head *wirev1.ResultHead, by time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase.final() {
		return errDetached
	}
	_ = c.rc.SetWriteDeadline(by)
	c.cold = head.GetCold()
	c.body.unhurried.Store(true)
	c.setHeaders(head)
	c.closeIfUnread()
	c.status, c.said = int(head.GetStatus()), invoke.ExecutedYes
	c.w.WriteHeader(c.status)
	if !head.GetWhole() {
		c.phase = answerHead
		return c.rc.Flush()
	}
	_, err := c.w.Write(head.GetWholeBody())
	c.end(answerComplete)
	if errors.Is(err, http.ErrBodyNotAllowed) {
		return nil
	}
	return err
}

func (c *call) setHeaders(head *wirev1.ResultHead) {
	h := c.w.Header()
	answerHeaders(h, head.GetHeaders())
	h.Set(invoke.HeaderInvocationID, c.id.String())
	h.Set(invoke.HeaderExecuted, string(invoke.ExecutedYes))
	h.Set(invoke.HeaderDurationMs, strconv.FormatFloat(float64(head.GetExecNs())/1e6, 'f', 3, 64))
	h.Set(invoke.HeaderQueueMs, strconv.FormatFloat(c.times.Waited().Seconds()*1e3, 'f', 3, 64))
	if head.GetCold() {
		h.Set(invoke.HeaderColdStart, "1")
	}
	if head.GetFunctionError() != "" {
		h.Set(invoke.HeaderFunctionError, invoke.Excerpt(head.GetFunctionError()))
	}
	if head.GetWhole() && c.request.Method != http.MethodHead && bodyAllowed(int(head.GetStatus())) {
		h.Set("Content-Length", strconv.Itoa(len(head.GetWholeBody())))
	}
}

// closeIfUnread makes the connection end with an answer that precedes the end of
// the request. The server is not told where in the body the reading stopped, and
// would take what is left of it for the next request.
func (c *call) closeIfUnread() {
	if c.request.ProtoMajor == 1 && !c.body.ended.Load() {
		c.w.Header().Set("Connection", "close")
	}
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// write sends more of the body at once.
func (c *call) write(body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != answerHead {
		return errDetached
	}
	if _, err := c.w.Write(body); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		c.end(answerDetached)
		return err
	}
	return c.rc.Flush()
}

// finish ends an answer whose body is complete.
func (c *call) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == answerHead {
		c.end(answerComplete)
	}
}

// detach gives up the client: nothing is sent to it any more.
func (c *call) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.phase.final() {
		c.end(answerDetached)
	}
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

// end moves to a final phase and wakes the handler, so that the ResponseWriter
// must not be used any more. The caller holds the lock.
func (c *call) end(phase answerPhase) {
	c.phase = phase
	c.times.End(time.Now())
	close(c.ended)
}

// answered tells whether nobody waits for an answer any more.
func (c *call) answered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase.final()
}

// broken tells whether the client has no whole answer, and will have none.
func (c *call) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == answerCut || c.phase == answerDetached
}
