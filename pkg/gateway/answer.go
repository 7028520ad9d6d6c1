package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

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

// fail answers with a problem, which the handler writes, or cuts off an answer that
// has begun. It does not wait for the client.
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
	c.problem = &p
	c.end(answerComplete)
}

// failQueued answers a call that will not leave the queue. One that an instance had
// before is answered with the loss of that instance, which is why it was queued.
func (c *call) failQueued(p problem, executed invoke.Executed) {
	p.Executed = executed
	c.mu.Lock()
	lost := c.lost
	c.mu.Unlock()
	if lost != "" {
		p = newProblem(http.StatusBadGateway, invoke.ExecutedMaybe, lost,
			"the call was broken off and could not run again: "+p.Detail)
	}
	c.fail(p)
}

// begin moves to the answer of the function; false if there is one already.
func (c *call) begin(head *wirev1.ResultHead) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != answerNone {
		return false
	}
	c.phase = answerHead
	c.status, c.said, c.cold = int(head.GetStatus()), invoke.ExecutedYes, head.GetCold()
	return true
}

// wrote ends an answer of the function's of which all was written that will be.
func (c *call) wrote(phase answerPhase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == answerHead {
		c.end(phase)
	}
}

// head sends the head of the function's answer, and its whole body if it came
// with it. A client that has not taken the answer by the given time is given up:
// as long as it is being written to, it holds an instance.
func (c *call) head(head *wirev1.ResultHead, by time.Time) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.begin(head) {
		return errDetached
	}
	_ = c.rc.SetWriteDeadline(by)
	c.body.unhurried.Store(true)
	c.setHeaders(head)
	c.closeIfUnread()
	c.w.WriteHeader(int(head.GetStatus()))
	if !head.GetWhole() {
		c.left = c.promised(head)
		return c.rc.Flush()
	}
	_, err := c.w.Write(head.GetWholeBody())
	c.wrote(answerComplete)
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
	h.Set(invoke.HeaderQueueMs, strconv.FormatFloat(c.timeline().Waited().Seconds()*1e3, 'f', 3, 64))
	if head.GetCold() {
		h.Set(invoke.HeaderColdStart, "1")
	}
	if head.GetFunctionError() != "" {
		h.Set(invoke.HeaderFunctionError, invoke.Excerpt(head.GetFunctionError()))
	}
	h.Del("Content-Length")
	switch {
	case !bodyAllowed(int(head.GetStatus())):
		// With 304 there may be one, at which clients of HTTP/2 stumble.
	case head.ContentLength != nil && head.GetContentLength() >= 0:
		h.Set("Content-Length", strconv.FormatInt(head.GetContentLength(), 10))
	case head.GetWhole() && c.hasBody(head):
		h.Set("Content-Length", strconv.Itoa(len(head.GetWholeBody())))
	}
}

// hasBody tells whether an answer has a body, if only an empty one.
func (c *call) hasBody(head *wirev1.ResultHead) bool {
	return c.request.Method != http.MethodHead && bodyAllowed(int(head.GetStatus()))
}

// promised is the length of the body that the head of an answer tells; -1 if it
// tells none.
func (c *call) promised(head *wirev1.ResultHead) int64 {
	if head.ContentLength == nil || !c.hasBody(head) {
		return -1
	}
	return head.GetContentLength()
}

// contradicts tells whether the head of an answer promises another body than the one
// that came with it, or one that cannot be.
func (c *call) contradicts(head *wirev1.ResultHead) bool {
	promised := c.promised(head)
	return promised < -1 || promised >= 0 && head.GetWhole() && promised != int64(len(head.GetWholeBody()))
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
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.answered() {
		return errDetached
	}
	if c.left >= 0 {
		if c.left -= int64(len(body)); c.left < 0 {
			c.wrote(answerCut)
			return errDetached
		}
	}
	if _, err := c.w.Write(body); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		c.detach()
		return err
	}
	return c.rc.Flush()
}

// finish ends an answer of which the instance has sent all. One that is shorter than
// its head promised was cut.
func (c *call) finish() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.left > 0 {
		c.wrote(answerCut)
		return
	}
	c.wrote(answerComplete)
}

// conclude writes an answer of Windlass's own, with as much detail as callers may read,
// and otherwise sees to it that the
// attempt writes no more. It is for the handler, once the call has ended.
func (c *call) conclude(detail ProblemDetail) {
	c.mu.Lock()
	p, given := c.problem, c.phase == answerComplete
	c.mu.Unlock()
	if !given {
		_ = c.rc.SetWriteDeadline(time.Now())
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if p != nil {
		c.closeIfUnread()
		p.send(c.w, detail)
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

// end moves to a final phase and wakes the handler, which has the ResponseWriter
// from then on. The caller holds the lock.
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

// cutOff ends a request whose client has no whole answer, so that it cannot take what
// it has for one. It is the last that the handler does.
func (c *call) cutOff() {
	if c.request.ProtoAtLeast(1, 1) {
		panic(http.ErrAbortHandler)
	}
	// To HTTP/1.0 a connection that ends is an answer that ends. One that is reset
	// is not.
	conn, _, err := c.rc.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
