package gateway

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// errDetached is returned to whoever answers a call that nobody waits for.
var errDetached = errors.New("gateway: the client is gone")

// call is one client's call: its request, and the one answer to it. The HTTP
// handler's goroutine waits on ended while the goroutine of the attempt reads
// the request and writes the answer.
type call struct {
	id       invoke.ID
	function *v1alpha1.Function
	uri      string // path and query behind the function's prefix
	request  *http.Request
	small    []byte // the whole body, if it was read beforehand
	whole    bool   // small is the whole body
	admitted time.Time
	counted  bool // in the gauge of calls in flight

	mu     sync.Mutex
	w      http.ResponseWriter
	rc     *http.ResponseController
	phase  answerPhase
	status int
	said   invoke.Executed
	// runBy is when the attempt must have ended; zero while queued.
	runBy time.Time
	ended chan struct{}
	// cancel ends the attempt; nil while queued.
	cancel func()
	// bodyRead is closed when nobody reads the request's body any more; nil
	// if nobody ever did.
	bodyRead chan struct{}
}

// answerPhase is how far the answer has come.
type answerPhase int

const (
	answerNone     answerPhase = iota // nothing was sent
	answerHead                        // the head was sent, the body follows
	answerComplete                    // all was sent
	answerCut                         // the head was sent and the rest never will be
	answerDetached                    // the client is gone, or was left
)

// final says that the phase will not change any more.
func (p answerPhase) final() bool { return p >= answerComplete }

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
	c.status, c.said = p.Status, p.Executed
	p.write(c.w)
	c.end(answerComplete)
}

// head sends the head of the function's answer, and its whole body if it came
// with it.
func (c *call) head(head *wirev1.ResultHead) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase.final() {
		return errDetached
	}
	h := c.w.Header()
	answerHeaders(h, head.GetHeaders())
	h.Set(invoke.HeaderInvocationID, c.id.String())
	h.Set(invoke.HeaderExecuted, string(invoke.ExecutedYes))
	h.Set(invoke.HeaderDurationMs, strconv.FormatFloat(float64(head.GetExecNs())/1e6, 'f', 3, 64))
	if head.GetCold() {
		h.Set(invoke.HeaderColdStart, "1")
	}
	if head.GetFunctionError() != "" {
		h.Set(invoke.HeaderFunctionError, head.GetFunctionError())
	}
	if head.GetWhole() && c.request.Method != http.MethodHead && bodyAllowed(int(head.GetStatus())) {
		h.Set("Content-Length", strconv.Itoa(len(head.GetWholeBody())))
	}
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

// end moves to a final phase and wakes the handler. A read of the body that
// still waits for the client is made to fail. The caller holds the lock.
func (c *call) end(phase answerPhase) {
	c.phase = phase
	if c.bodyRead != nil {
		_ = c.rc.SetReadDeadline(time.Unix(1, 0))
	}
	close(c.ended)
}

// cut tells whether an answer was begun that will never be whole.
func (c *call) cut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == answerCut
}

// start notes that an attempt has begun that must end by the given time.
func (c *call) start(runBy time.Time, cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runBy, c.cancel = runBy, cancel
}

// release notes that the attempt was given back before it started.
func (c *call) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runBy, c.cancel = time.Time{}, nil
}

// stop ends the attempt, if there is one.
func (c *call) stop() {
	c.mu.Lock()
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// running tells until when the attempt may run; zero while queued.
func (c *call) running() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runBy
}

// beginBody says that an attempt reads the request's body from now on, until
// the returned function is called. Only the first attempt may: a body that has
// been read from cannot be read again.
func (c *call) beginBody() (body io.Reader, done func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bodyRead != nil || c.phase.final() {
		return nil, nil, false
	}
	read := make(chan struct{})
	c.bodyRead = read
	return c.request.Body, func() { close(read) }, true
}

// bodyUnread tells whether the body is still there for a next attempt.
func (c *call) bodyUnread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.whole || c.bodyRead == nil
}

// waitBody waits until nobody reads the request's body.
func (c *call) waitBody() {
	c.mu.Lock()
	read := c.bodyRead
	c.mu.Unlock()
	if read != nil {
		<-read
	}
}
