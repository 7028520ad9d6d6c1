package podagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// Why a call or its claim is cancelled, or does not begin.
var (
	errUnwanted = errors.New("its client has left")
	errReleased = errors.New("the claim was given up")
	errNoCore   = fmt.Errorf("%w: it waited for a core of the node", adapter.ErrNotStarted)
	errCoreLate = fmt.Errorf("%w: no core of its node was free in that time", adapter.ErrTooLate)
	errRunsLate = fmt.Errorf("%w: its deadline passed before it began", adapter.ErrNotTaken)
)

// attempt is the work on one call: its claim, if a ticket led to it, and its run. The agent's
// lock guards the claim; the fields of the run do not change once it has started.
type attempt struct {
	agent  *Agent
	number core.Attempt
	conn   *gatewayConn
	// wire is the call's number on the connection.
	wire uint32
	id   invocation.ID
	// claimedAt is when the claim was sent; zero without one.
	claimedAt time.Time

	// call is set once the call has come, and whole is its body if that came with it. work runs it,
	// and is nil until then, cancel ends it early, and whenOver calls a function when it is over, with
	// the reason.
	call     adapter.Call
	whole    bytes.Reader
	work     func()
	cancel   context.CancelCauseFunc
	whenOver func(func(why error)) (stop func() bool)
	// waiting says that a call that came by a credit has not begun.
	waiting bool
	// coreWait is how long it waited for a core of the node, and waitedBefore how long it had at
	// instances that gave it up.
	coreWait, waitedBefore time.Duration
	// cold says that it is the first call of the instance.
	cold bool
	// since is when the claim was sent or, without one, when the call came.
	since time.Time
	// body is nil if the request came whole. It ends with the call, which unwatch stops.
	body    *callwire.Inflow
	unwatch func() bool
	answer  answer
	// lost says that the gateway takes nothing of the answer any more, and out is nil until
	// the answer is sent in parts.
	lost atomic.Bool
	out  atomic.Pointer[callwire.Outflow]
}

// granted reports whether the call has come.
func (at *attempt) granted() bool { return at.work != nil }

// receive takes the call, whose frame is valid only now.
func (at *attempt) receive(message *callwire.Call, since time.Time) {
	ctx, cancel := context.WithCancelCause(context.Background())
	at.cancel, at.work = cancel, func() { at.run(ctx) }
	at.whenOver = func(then func(error)) func() bool { return context.AfterFunc(ctx, func() { then(context.Cause(ctx)) }) }
	at.since, at.waitedBefore = since, message.CoreWait
	at.call = newCall(message, time.Now().Add(message.Remaining))
	if message.Whole {
		at.whole.Reset(bytes.Clone(message.Body))
		at.call.Body, at.call.ContentLength = &at.whole, int64(len(message.Body))
		return
	}
	body := callwire.NewInflow(at.conn.frames, at.wire)
	at.body, at.call.Body = body, &requestBody{body, at.call.Trailer}
	at.unwatch = at.whenOver(func(why error) { body.End(why, nil) })
}

// start runs the call in a worker. The caller holds the agent's lock.
func (at *attempt) start(coreWait time.Duration) {
	a := at.agent
	at.coreWait = coreWait
	at.waiting = false
	at.cold, a.served = !a.served, true
	a.watchDeadline(at.call.Deadline)
	a.workers.run(at)
}

// run hands the call to the function and its answer to the gateway. The core decides about the
// place before the last frame is sent, which says so.
func (at *attempt) run(ctx context.Context) {
	a := at.agent
	at.answer.begin(at, at.cold)
	err := errRunsLate // an adapter would blame the function
	if at.answer.begun.Before(at.call.Deadline) {
		err = a.lossCause(ctx, a.deps.Adapter.Invoke(ctx, &at.call, &at.answer))
	}
	ended := core.CallEnded{Attempt: at.number, Outcome: outcome(err), Exec: at.answer.end(err)}
	if err != nil {
		ended.Detail = errorText(err)
		a.deps.Log.Warn("a call failed", "invocation", at.call.ID, "trace", traceOf(at.call.Header), "err", ended.Detail)
	}
	at.endBody()
	a.notify(ended)
	at.cancel(nil)
	runtime.Gosched() // the answers of others that are ready go out with this one
	at.conn.frames.Flush()
}

// endBody lets nothing of the request in any more.
func (at *attempt) endBody() {
	if at.body != nil {
		at.unwatch()
		at.body.End(callwire.ErrBodyEnded, nil)
	}
}

// deliver appends the last frame, and forgets the attempt. The caller holds the agent's lock.
// The goroutine of the call writes the frame after that; a call that has not begun has none.
func (at *attempt) deliver(e core.Deliver) {
	at.forget()
	if at.waiting {
		at.answer.err = errNoCore
		if e.Late {
			at.answer.err = errCoreLate
		}
		at.endBody()
		at.cancel(at.answer.err)
	}
	if !at.lost.Load() {
		frames := at.conn.frames
		frames.CommitLater(at.answer.appendLast(frames.Begin(), at.wire, e.Keeps))
		if at.waiting {
			frames.FlushLater()
		}
	}
}

// tellWait tells the gateway whether the call waits for a core. The caller holds the agent's lock.
func (at *attempt) tellWait(waits bool) {
	var waited time.Duration
	if waits {
		waited = max(1, at.waitedForCore())
	}
	at.conn.send(func(b []byte) []byte { return callwire.AppendLongWait(b, at.wire, waited) })
}

// waitedForCore is for how long a call by a loan has waited for a core, here and at the instances
// that gave it up.
func (at *attempt) waitedForCore() time.Duration { return time.Since(at.since) + at.waitedBefore }

// release releases a claim. The caller holds the agent's lock.
func (at *attempt) release() {
	at.forget()
	if at.granted() { // to an instance that must not run it
		at.cancel(errReleased)
	}
	r := callwire.Release{Reason: errReleased.Error()}
	at.conn.send(func(b []byte) []byte { return r.Append(b, at.wire) })
}

// cancelCall ends the call early, if it has begun.
func (at *attempt) cancelCall(why error) {
	if at.granted() {
		at.cancel(why)
	}
}

// forget lets later frames of the attempt mean nothing. The caller holds the agent's lock.
func (at *attempt) forget() {
	delete(at.agent.attempts, at.number)
	delete(at.conn.calls, at.wire)
}

// gatewayLost ends what comes from the gateway and goes there. The call goes on.
func (at *attempt) gatewayLost() {
	at.lost.Store(true)
	if at.body != nil {
		at.body.End(errBodyCut, nil)
	}
	if out := at.out.Load(); out != nil {
		out.End(errGatewayLost)
	}
}

// outflow is where the parts of an answer go. The first use makes it.
func (at *attempt) outflow() *callwire.Outflow {
	if out := at.out.Load(); out != nil {
		return out
	}
	out := callwire.NewOutflow(at.conn.frames, at.wire)
	at.out.Store(out)
	// A slow client must not hold a call that has ended.
	at.whenOver(out.End)
	if at.lost.Load() {
		out.End(errGatewayLost)
	}
	return out
}

// onFrame handles a frame of the running call. Only the reader of the connection calls it.
func (at *attempt) onFrame(f callwire.Frame) error {
	switch f.Kind {
	case callwire.KindCancel:
		at.agent.notify(core.Cancelled{Attempt: at.number})
		return nil
	case callwire.KindGiveUp:
		at.agent.notify(core.GiveUp{Attempt: at.number})
		return nil
	case callwire.KindWindow:
		n, err := callwire.ParseCount(f)
		if out := at.out.Load(); out != nil && err == nil {
			out.Open(n)
		}
		return err
	}
	if at.body == nil {
		return fmt.Errorf("%w: a part of a body came after the whole", callwire.ErrFrame)
	}
	if f.Kind == callwire.KindBody {
		return at.body.Push(f.Payload)
	}
	end, err := callwire.ParseEnd(f)
	if err != nil {
		return err
	}
	if end.Cut {
		at.agent.notify(core.BodyCut{Attempt: at.number})
	}
	at.body.End(bodyEnd(end), end.Trailer)
	return nil
}

// watchDeadline lets checkDeadlines run at t at the latest. One timer serves all calls, so that
// most start none: it is set again only if a call must end before all others. The caller holds
// the lock.
func (a *Agent) watchDeadline(t time.Time) {
	if a.deadline.IsZero() || t.Before(a.deadline) {
		a.deadline = t
		a.deadlines.Reset(time.Until(t))
	}
}

// checkDeadlines ends the calls whose time is over. Of those that wait for a core, the core of the
// agent knows it.
func (a *Agent) checkDeadlines() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deadline = time.Time{}
	now, next := time.Now(), time.Time{}
	for _, at := range a.attempts {
		switch {
		case !at.granted() || at.waiting:
		case !now.Before(at.call.Deadline):
			at.cancel(context.DeadlineExceeded)
		case next.IsZero() || at.call.Deadline.Before(next):
			next = at.call.Deadline
		}
	}
	if !next.IsZero() {
		a.watchDeadline(next)
	}
}

// functionEndTimeout is how long a call that the function broke off waits for the report of
// the function's end, because its connections break a moment earlier.
const functionEndTimeout = 50 * time.Millisecond

// lossCause is the end of the function if that explains err, and otherwise err. A call that the
// function never saw may wrap that end, too, as the reason why its context ended.
func (a *Agent) lossCause(ctx context.Context, err error) error {
	if a.deps.FunctionEnd == nil || outcome(err) != core.Broken || !errors.Is(err, adapter.ErrFunctionLost) {
		return err
	}
	patience, over := context.WithTimeout(ctx, functionEndTimeout)
	defer over()
	select {
	case <-a.function.known:
	case <-patience.Done():
	}
	if lost := a.function.lostError(); lost != nil {
		return lost
	}
	return err
}
