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
	state   *callState
	request *http.Request
	body    *requestBody
	// shared is the function's path on the shared origin; empty on an origin of its own.
	shared string

	// mu guards everything below, and rc's write deadline. It is held while the client reads
	// slowly; only these two wait for it.
	mu sync.Mutex
	w  http.ResponseWriter
	rc *http.ResponseController
	// left is how much of the body is still to be written; -1 if that is unknown.
	left int64
}

// head sends the head of the function's answer, and its whole body if it came with it. A
// client that has not read the answer by that time is dropped, because it holds an instance
// while it is written to. The caller holds the lock.
func (c *client) head(head *agentwire.ResultHead, by time.Time) error {
	_ = c.rc.SetWriteDeadline(by)
	c.body.answering.Store(true)
	c.setHeaders(head)
	c.closeIfUnread()
	c.w.WriteHeader(int(head.GetStatus()))
	if !head.GetWhole() {
		c.left = c.announcedLength(head)
		return c.rc.Flush()
	}
	_, err := c.w.Write(head.GetWholeBody())
	c.state.answerWritten(true)
	if errors.Is(err, http.ErrBodyNotAllowed) {
		return nil
	}
	return err
}

func (c *client) setHeaders(head *agentwire.ResultHead) {
	h := c.w.Header()
	answerHeaders(h, head.GetHeaders(), c.shared)
	h.Set(invocation.HeaderInvocationID, c.state.id.String())
	h.Set(invocation.HeaderExecuted, string(invocation.ExecutedYes))
	if revision := c.state.destination().unit.FunctionRevisionName(); revision != "" {
		h.Set(invocation.HeaderRevision, revision)
	}
	timing := invocation.Timing{Queue: c.state.timeline().Waited(), Cold: head.GetCold(), Function: time.Duration(max(0, head.GetExecNs()))}
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

// hasBody reports whether an answer has a body, even an empty one.
func (c *client) hasBody(head *agentwire.ResultHead) bool {
	return c.request.Method != http.MethodHead && bodyAllowed(int(head.GetStatus()))
}

// announcedLength is the length of the body as the head of an answer announces it; -1 if it
// does not.
func (c *client) announcedLength(head *agentwire.ResultHead) int64 {
	if head.ContentLength == nil || !c.hasBody(head) {
		return -1
	}
	return head.GetContentLength()
}

// lengthMismatch reports whether the head of an answer announces another length than the body
// that came with it, or an impossible one.
func (c *client) lengthMismatch(head *agentwire.ResultHead) bool {
	promised := c.announcedLength(head)
	return promised < -1 || promised >= 0 && head.GetWhole() && promised != int64(len(head.GetWholeBody()))
}

// closeIfUnread closes the connection after an answer that comes before the end of the
// request. The server does not know where in the body the reading stopped, and would take the
// rest for the next request.
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
	if c.state.answered() {
		return errDetached
	}
	if c.left >= 0 {
		if c.left -= int64(len(body)); c.left < 0 {
			c.state.answerWritten(false)
			return errDetached
		}
	}
	if _, err := c.w.Write(body); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		return err
	}
	return c.rc.Flush()
}

// finishAnswer completes an answer that the instance has sent completely. An answer that is
// shorter than announced counts as cut.
func (c *client) finishAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.answerWritten(c.left <= 0)
}

// writeProblem writes Windlass's own answer, if the call has one, with as much detail as
// callers may read; otherwise it makes sure that the attempt writes no more. The handler calls
// it once the call has ended.
func (c *client) writeProblem(detail ProblemDetail) {
	answer, p := c.state.answer()
	if answer != core.AnswerComplete {
		_ = c.rc.SetWriteDeadline(time.Now())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p != nil {
		c.closeIfUnread()
		p.write(c.w, detail)
	}
}

// abortConnection ends a request whose client has no complete answer, so that the client
// cannot mistake it for one. The handler does nothing after it.
func (c *client) abortConnection() {
	if c.request.ProtoAtLeast(1, 1) {
		panic(http.ErrAbortHandler)
	}
	// For HTTP/1.0, the end of the connection is the end of the answer, but a reset is not.
	conn, _, err := c.rc.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
