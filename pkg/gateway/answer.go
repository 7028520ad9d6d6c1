package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// client is the client's end of a call. Only the HTTP handler uses it.
type client struct {
	state   *callState
	request *http.Request
	body    requestBody
	// shared is the function's path on the shared origin; empty on an origin of its own.
	shared string

	w  http.ResponseWriter
	rc http.ResponseController
}

// relay passes on to the client what has come of the function's answer.
func (g *Gateway) relay(c *call) {
	interim, head, by := c.takeHead()
	for _, one := range interim {
		c.client.interim(&one, by.runBy)
	}
	if head == nil {
		return
	}
	err := g.answerClient(c, head, by)
	if err != nil && !errors.Is(err, callwire.ErrBodyEnded) {
		g.shell.step(c, (*core.Invocation).ClientLeft, problem{})
	}
}

// answerClient writes the answer to the client. The error says that the client takes no more.
func (g *Gateway) answerClient(c *call, head *callwire.Head, by *attempt) error {
	if head.Status == http.StatusSwitchingProtocols {
		return g.switchProtocols(c, head, by)
	}
	if err := c.client.head(head, by.runBy); err != nil || head.Whole {
		return err
	}
	stop := context.AfterFunc(c.client.request.Context(), func() {
		if !c.client.body.slow.Load() { // as in wait
			g.clientLeft(c)
		}
	})
	defer stop()
	return c.client.rest(head)
}

// writeBy is until when a client may take an answer of an attempt that must have ended by runBy. One
// that comes then, or before an audit has seen that, counts: so its client has time for it, and no write fails,
// which would count as a client that has left, before the audit.
func writeBy(runBy time.Time) time.Time {
	least, audited := time.Now().Add(problemWithin), runBy.Add(2*core.ReofferEvery)
	if least.After(audited) {
		return least
	}
	return audited
}

// interim sends an interim answer. A client that does not read it in time is dropped.
func (c *client) interim(head *callwire.Head, runBy time.Time) {
	if head.Status == http.StatusContinue || !c.request.ProtoAtLeast(1, 1) {
		return // the server says it when the body is read
	}
	h := c.w.Header()
	before := h.Clone()
	answerHeaders(h, head.Header, c.shared)
	_ = c.rc.SetWriteDeadline(writeBy(runBy))
	c.w.WriteHeader(head.Status)
	_ = c.rc.SetWriteDeadline(time.Time{}) // for the answer, which may be that the time is over
	clear(h)
	for name, values := range before {
		h[name] = values
	}
}

// head sends the head of the function's answer, and its whole body if it came with it. A
// client that does not read the answer in time is dropped.
func (c *client) head(head *callwire.Head, runBy time.Time) error {
	_ = c.rc.SetWriteDeadline(writeBy(runBy))
	c.body.mayPause.Store(true)
	c.setHeaders(head)
	c.closeIfUnread()
	c.w.WriteHeader(head.Status)
	if !head.Whole {
		return c.rc.Flush()
	}
	if _, err := c.w.Write(head.Body); err != nil && c.hasBody(head) {
		return err
	}
	c.state.answerWritten(true)
	return nil
}

func (c *client) setHeaders(head *callwire.Head) {
	h := c.functionHeaders(c.w.Header(), head)
	if head.FunctionError != "" {
		h.set(invocation.HeaderFunctionError, invocation.Excerpt(head.FunctionError))
	}
	if h.Header["Content-Type"] == nil {
		h.Header["Content-Type"] = nil // otherwise the server guesses one from the body, such as text/html
	}
	h.Del("Content-Length")
	switch {
	case !bodyAllowed(head.Status):
		// With 304 there may be one, at which clients of HTTP/2 stumble.
	case head.ContentLength >= 0:
		h.set("Content-Length", strconv.FormatInt(head.ContentLength, 10))
	case head.Whole && c.hasBody(head):
		h.set("Content-Length", strconv.Itoa(len(head.Body)))
	}
	for _, name := range head.Trailer {
		if httpguts.ValidTrailerHeader(name) && !hopByHop(http.CanonicalHeaderKey(name)) {
			h.Add("Trailer", name)
		}
	}
}

// functionHeaders sets the headers of the function's answer, and what Windlass says of the call.
func (c *client) functionHeaders(of http.Header, head *callwire.Head) answerHeader {
	h := answerHeaders(of, head.Header, c.shared)
	h.set(invocation.HeaderInvocationID, c.state.id.String())
	h.set(invocation.HeaderExecuted, string(invocation.ExecutedYes))
	if revision := c.state.destination().unit.FunctionRevisionName(); revision != "" {
		h.set(invocation.HeaderRevision, revision)
	}
	timing := invocation.Timing{Queue: c.state.timeline().Waited(), Cold: head.Cold, Function: head.Exec}
	h.add(invocation.HeaderTiming, timing.String())
	return h
}

// hasBody reports whether an answer has a body, even an empty one.
func (c *client) hasBody(head *callwire.Head) bool {
	return c.request.Method != http.MethodHead && bodyAllowed(head.Status)
}

// announcedLength is the length of the body as the head of an answer announces it; -1 if it
// does not.
func (c *client) announcedLength(head *callwire.Head) int64 {
	if !c.hasBody(head) {
		return -1
	}
	return head.ContentLength
}

const (
	// maxHeadBytes bounds the head of an answer, and its trailers. maxInterimBytes bounds the head of an
	// interim one, which waits for the client and counts against no budget.
	maxHeadBytes    = 64 << 10
	maxInterimBytes = 4 << 10
	// fieldBytes is what a header takes besides its name and its value, as HTTP/2 counts it.
	fieldBytes = 32
)

// headBytes is the size of a head.
func headBytes(head *callwire.Head) int {
	n := len(head.Upgrade) + len(head.FunctionError) + fieldsBytes(head.Header)
	for _, name := range head.Trailer {
		n += len(name) + fieldBytes
	}
	return n
}

// fieldsBytes is the size of headers or trailers.
func fieldsBytes(fields []callwire.Field) (n int) {
	for _, f := range fields {
		n += len(f.Name) + len(f.Value) + fieldBytes
	}
	return n
}

// badHead is the answer to a client whose function's answer makes no sense; nil if it does.
func (c *client) badHead(head *callwire.Head) *problem {
	switch promised := c.announcedLength(head); {
	case head.Status == http.StatusSwitchingProtocols && !head.Whole && head.Upgrade != "" && upgradeOf(c.request) != "":
	case head.Status == http.StatusSwitchingProtocols:
		return new(newProblem(problems.BadAnswer,
			"the function answered with the status 101 to a client that had not asked for another protocol, or did not name the protocol"))
	case head.Status < 200 || head.Status > 599:
		return new(newProblem(problems.BadAnswer, fmt.Sprintf("the function answered with the status %d, which is none", head.Status)))
	case headBytes(head) > maxHeadBytes:
		return new(newProblem(problems.BadAnswer, fmt.Sprintf("the function answered with more than %d bytes of headers", maxHeadBytes)))
	case promised >= 0 && head.Whole && promised != int64(len(head.Body)):
		return new(newProblem(problems.BadAnswer, fmt.Sprintf("the instance promised a body of %d bytes and sent one of %d", promised, len(head.Body))))
	}
	return nil
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

// rest sends the rest of an answer whose head was sent, each part as soon as it comes. An
// answer that is shorter than announced counts as cut, and so does one that is longer.
func (c *client) rest(head *callwire.Head) error {
	body, left := c.state.answerBody(), c.announcedLength(head)
	buffer := bodyBuffers.Get().(*[bodyChunk]byte)
	defer bodyBuffers.Put(buffer)
	for {
		n, err := body.Read(buffer[:])
		if errors.Is(err, callwire.ErrBodyEnded) {
			return err // the call is over
		}
		if left >= 0 {
			if left -= int64(n); left < 0 {
				c.state.answerWritten(false)
				return callwire.ErrBodyEnded
			}
		}
		if n > 0 {
			if _, err := c.w.Write(buffer[:n]); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
				return err
			}
		}
		if n > 0 && !body.Buffered() {
			if err := c.rc.Flush(); err != nil {
				return err
			}
		}
		if err != nil {
			whole := errors.Is(err, io.EOF) && left <= 0
			if whole {
				c.trailers(body.Trailer())
			}
			c.state.answerWritten(whole)
			return nil
		}
	}
}

// trailers sends the trailers of the function's answer, which follow the body.
func (c *client) trailers(fields []callwire.Field) {
	if len(fields) == 0 {
		return
	}
	h := make(http.Header, len(fields))
	answerHeaders(h, fields, c.shared)
	announced := c.w.Header()["Trailer"]
	for name, values := range h {
		switch {
		case !httpguts.ValidTrailerHeader(name):
		case slices.Contains(announced, name):
			c.w.Header()[name] = values
		default:
			c.w.Header()[http.TrailerPrefix+name] = values
		}
	}
}

// writeProblem writes Windlass's own answer, if the call has one, with as much detail as
// callers may read. The handler calls it once the call has ended.
func (c *client) writeProblem(detail ProblemDetail) {
	answer, p := c.state.answer()
	if answer != core.AnswerComplete {
		_ = c.rc.SetWriteDeadline(time.Now())
	}
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
