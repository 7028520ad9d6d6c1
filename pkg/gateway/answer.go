package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// client is the client's end of a call: nothing else writes to it. The attempt does until
// the call has ended, and the handler from then on.
type client struct {
	life    *life
	request *http.Request
	body    *requestBody
	// shared is the function's path on the shared origin; empty on an origin of its own.
	shared string

	// mu guards everything below, and rc's deadline for writing. It is held while the
	// client takes its time: nobody waits for it but these two.
	mu sync.Mutex
	w  http.ResponseWriter
	rc *http.ResponseController
	// left is how much of the body is still to be written; -1 if that is unknown.
	left int64
}

// head sends the head of the function's answer, and its whole body if it came
// with it. A client that has not taken the answer by the given time is given up:
// as long as it is being written to, it holds an instance. The caller holds the
// lock.
func (c *client) head(head *agentwire.ResultHead, by time.Time) error {
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
	c.life.wrote(true)
	if errors.Is(err, http.ErrBodyNotAllowed) {
		return nil
	}
	return err
}

func (c *client) setHeaders(head *agentwire.ResultHead) {
	h := c.w.Header()
	answerHeaders(h, head.GetHeaders(), c.shared)
	h.Set(invocation.HeaderInvocationID, c.life.id.String())
	h.Set(invocation.HeaderExecuted, string(invocation.ExecutedYes))
	if revision := c.life.destination().unit.FunctionRevisionName(); revision != "" {
		h.Set(invocation.HeaderRevision, revision)
	}
	timing := invocation.Timing{Queue: c.life.timeline().Waited(), Cold: head.GetCold(), Function: time.Duration(max(0, head.GetExecNs()))}
	h.Add(invocation.HeaderTiming, timing.String())
	if head.GetFunctionError() != "" {
		h.Set(invocation.HeaderFunctionError, invocation.Excerpt(head.GetFunctionError()))
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
func (c *client) hasBody(head *agentwire.ResultHead) bool {
	return c.request.Method != http.MethodHead && bodyAllowed(int(head.GetStatus()))
}

// promised is the length of the body that the head of an answer tells; -1 if it
// tells none.
func (c *client) promised(head *agentwire.ResultHead) int64 {
	if head.ContentLength == nil || !c.hasBody(head) {
		return -1
	}
	return head.GetContentLength()
}

// contradicts tells whether the head of an answer promises another body than the one
// that came with it, or one that cannot be.
func (c *client) contradicts(head *agentwire.ResultHead) bool {
	promised := c.promised(head)
	return promised < -1 || promised >= 0 && head.GetWhole() && promised != int64(len(head.GetWholeBody()))
}

// closeIfUnread makes the connection end with an answer that precedes the end of
// the request. The server is not told where in the body the reading stopped, and
// would take what is left of it for the next request.
func (c *client) closeIfUnread() {
	if c.request.ProtoMajor == 1 && !c.body.ended.Load() {
		c.w.Header().Set("Connection", "close")
	}
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// write sends more of the body at once.
func (c *client) write(body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.answered() {
		return errDetached
	}
	if c.left >= 0 {
		if c.left -= int64(len(body)); c.left < 0 {
			c.life.wrote(false)
			return errDetached
		}
	}
	if _, err := c.w.Write(body); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		return err
	}
	return c.rc.Flush()
}

// finish ends an answer that the instance has sent to its end. One that is shorter than
// its head promised was cut.
func (c *client) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life.wrote(c.left <= 0)
}

// conclude writes an answer of Windlass's own, with as much detail as callers may read,
// and otherwise sees to it that the attempt writes no more. It is for the handler, once the call has ended.
func (c *client) conclude(detail ProblemDetail) {
	answer, p := c.life.answer()
	if answer != core.AnswerComplete {
		_ = c.rc.SetWriteDeadline(time.Now())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p != nil {
		c.closeIfUnread()
		p.send(c.w, detail)
	}
}

// cutOff ends a request whose client has no whole answer, so that it cannot take what
// it has for one. It is the last that the handler does.
func (c *client) cutOff() {
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
