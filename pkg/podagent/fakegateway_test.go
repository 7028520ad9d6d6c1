package podagent

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// fakeGateway hands every connection and every claim to the test, which speaks for it.
type fakeGateway struct {
	conns  chan *gatewayEnd
	claims chan *claimed
	// protocol is what it speaks; 0 for none.
	protocol uint32

	mu    sync.Mutex
	up    chan struct{} // closed while it can be reached
	dials int
}

func newFakeGateway() *fakeGateway {
	up := make(chan struct{})
	close(up)
	return &fakeGateway{conns: make(chan *gatewayEnd, 1000), claims: make(chan *claimed, 1000), protocol: 1, up: up}
}

func (g *fakeGateway) takeDown() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.up = make(chan struct{})
}

func (g *fakeGateway) putUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.up)
}

// dialled is how often it was dialled.
func (g *fakeGateway) dialled() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dials
}

// dial connects without a network.
func (g *fakeGateway) dial(ctx context.Context, _ string) (net.Conn, error) {
	g.mu.Lock()
	up := g.up
	g.dials++
	g.mu.Unlock()
	select {
	case <-up:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	agent, gateway := newPipe()
	go func() { _ = g.serve(gateway) }()
	return agent, nil
}

// gatewayEnd is the gateway's end of one connection.
type gatewayEnd struct {
	t     *testing.T
	wire  *callwire.Conn
	hello callwire.Hello
	// credits has what the agent says about them.
	credits chan string
	// over is closed when the connection has ended.
	over chan struct{}

	mu    sync.Mutex
	calls map[uint32]*claimed
	last  uint32
	// balance is how many credits it has, as callwire counts them.
	balance int
	// ignores says that it does nothing about frames of calls.
	ignores atomic.Bool
	// busy says that the agent's node is.
	busy atomic.Bool
	// stalled is closed while the gateway reads, and nil unless the test has stopped that.
	stalled chan struct{}
}

// claimed is the gateway's end of one attempt.
type claimed struct {
	*gatewayEnd
	number uint32
	claim  callwire.Claim
	said   chan callwire.Frame
	out    *callwire.Outflow // the gateway's lock guards it
	// opensNothing says that its client takes nothing of the answer.
	opensNothing atomic.Bool
}

// opens lets the agent's windows open an outflow.
func (c *claimed) opens(out *callwire.Outflow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = out
}

func (e *gatewayEnd) openWindow(number, n uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.calls[number]; a != nil && a.out != nil {
		a.out.Open(n)
	}
}

var resumeToken = [16]byte{'r'}

// serve is the gateway's side of a connection.
func (g *fakeGateway) serve(c net.Conn) error {
	e := &gatewayEnd{
		wire: callwire.Accept(c, 5*time.Second, nil), credits: make(chan string, 1000), over: make(chan struct{}),
		calls: make(map[uint32]*claimed),
	}
	defer close(e.over)
	defer e.wire.Close()
	first, err := e.wire.Read()
	if err != nil {
		return err
	}
	if e.hello, err = callwire.ParseHello(first); err != nil {
		return err
	}
	e.wire.Trust()
	welcome := callwire.Welcome{Protocol: g.protocol, Resume: resumeToken}
	e.write(welcome.Append)
	g.conns <- e
	defer e.endAll()
	for {
		f, err := e.wire.Read()
		if err != nil {
			return err
		}
		if stalled := e.stall(); stalled != nil {
			<-stalled
			return nil
		}
		f.Payload = bytes.Clone(f.Payload)
		switch f.Kind {
		case callwire.KindClaim:
			claim, err := callwire.ParseClaim(f)
			if err != nil {
				return err
			}
			a := e.attempt(f.Call)
			a.claim = claim
			g.claims <- a
		case callwire.KindLend, callwire.KindTakeBack:
			n, _ := callwire.ParseCount(f)
			if f.Kind == callwire.KindLend {
				e.lend(int(n))
			} else {
				e.lend(-int(n))
			}
			e.credits <- fmt.Sprintf("%s %d", map[callwire.Kind]string{callwire.KindLend: "lend", callwire.KindTakeBack: "takeBack"}[f.Kind], n)
		case callwire.KindNode:
			e.busy.Store(f.Has(callwire.FlagBusy))
		case callwire.KindWindow:
			if n, err := callwire.ParseCount(f); err == nil {
				e.openWindow(f.Call, n)
			}
		default:
			e.hand(f)
		}
	}
}

func (e *gatewayEnd) attempt(number uint32) *claimed {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &claimed{gatewayEnd: e, number: number, said: make(chan callwire.Frame, 1000)}
	e.calls[number] = a
	return a
}

// deafen lets the gateway read nothing more, until it goes away at the end of the test.
func (e *gatewayEnd) deafen() (goAway func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	stalled := make(chan struct{})
	e.stalled = stalled
	return func() { close(stalled) }
}

func (e *gatewayEnd) stall() chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stalled
}

// lend changes the gateway's credits, and returns how many it has.
func (e *gatewayEnd) lend(n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.balance += n
	return e.balance
}

// hand hands a frame of a call to the test, and opens the window behind parts of a body.
func (e *gatewayEnd) hand(f callwire.Frame) {
	e.mu.Lock()
	a := e.calls[f.Call]
	if f.Has(callwire.FlagKeeps) || f.Kind == callwire.KindRelease && f.Has(callwire.FlagNoCredit) {
		e.balance++
	}
	e.mu.Unlock()
	if e.ignores.Load() {
		return
	}
	if a == nil {
		panic(fmt.Sprintf("a frame of kind %d of the call %d, which is over", f.Kind, f.Call))
	}
	a.said <- f
	if f.Kind == callwire.KindBody && !a.opensNothing.Load() {
		e.write(func(b []byte) []byte {
			return callwire.AppendCount(b, callwire.KindWindow, f.Call, uint32(len(f.Payload)))
		})
	}
	if f.Kind == callwire.KindEnd || f.Kind == callwire.KindRelease || f.Kind == callwire.KindHead && f.Has(callwire.FlagWhole) {
		e.mu.Lock()
		delete(e.calls, f.Call)
		e.mu.Unlock()
		close(a.said)
	}
}

// endAll ends what the test hears of the calls of a connection that is over.
func (e *gatewayEnd) endAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.calls {
		close(a.said)
	}
	e.calls = nil
}

func (e *gatewayEnd) write(frame func([]byte) []byte) { e.wire.Commit(frame(e.wire.Begin())) }

// lose ends the connection as a gateway that goes away does, and waits until the agent knows.
func (e *gatewayEnd) lose() {
	e.wire.Close()
	<-e.over
}

// call hands over a call by a credit.
func (e *gatewayEnd) call(c callwire.Call) *claimed {
	e.lend(-1)
	e.last += 2
	a := e.attempt(e.last)
	a.grant(c)
	return a
}

// giveBack returns credits.
func (e *gatewayEnd) giveBack(n uint32) {
	e.lend(-int(n))
	e.write(func(b []byte) []byte { return callwire.AppendCount(b, callwire.KindReturn, 0, n) })
}

// hearCredits expects what the agent says about credits.
func (e *gatewayEnd) hearCredits(want string) {
	e.t.Helper()
	if got := <-e.credits; got != want {
		e.t.Fatalf("heard %q, want %q", got, want)
	}
}

// grant sends the call.
func (c *claimed) grant(m callwire.Call) {
	if m.Remaining == 0 {
		m.Remaining = time.Minute
	}
	if m.Invocation == (invocation.ID{}) {
		m.Invocation = c.claim.Invocation
	}
	c.write(func(b []byte) []byte { return m.Append(b, c.number) })
}

func (c *claimed) refuse() {
	c.write(func(b []byte) []byte { return callwire.AppendRefused(b, c.number, callwire.RefusedNotWaiting) })
}

func (c *claimed) body(text string) {
	c.write(func(b []byte) []byte { return callwire.AppendBody(b, c.number, []byte(text)) })
}

func (c *claimed) bodyEnd(cut bool, trailer ...callwire.Field) {
	end := callwire.End{Cut: cut, Trailer: trailer}
	c.write(func(b []byte) []byte { return end.Append(b, c.number) })
}

func (c *claimed) cancel() {
	c.write(func(b []byte) []byte { return callwire.AppendFrame(b, callwire.KindCancel, 0, c.number, nil) })
}

// giveUp asks for a call that has not begun.
func (c *claimed) giveUp() {
	c.write(func(b []byte) []byte { return callwire.AppendFrame(b, callwire.KindGiveUp, 0, c.number, nil) })
}

// released reports whether the agent has given the claim up.
func (c *claimed) released() bool {
	select {
	case f := <-c.said:
		return f.Kind == callwire.KindRelease
	default:
		return false
	}
}

// hear expects the agent's next words about the attempt.
func (c *claimed) hear(want ...string) {
	c.t.Helper()
	for _, want := range want {
		f, ok := <-c.said
		if !ok {
			c.t.Fatalf("the attempt is over, want %q", want)
		}
		if got := tellAttempt(f); got != want {
			c.t.Fatalf("heard %q, want %q", got, want)
		}
	}
}

// hearEnd expects that the agent has said its last words about the attempt.
func (c *claimed) hearEnd() {
	c.t.Helper()
	if f, ok := <-c.said; ok {
		c.t.Fatalf("heard %q, want the end of the attempt", tellAttempt(f))
	}
}

func tellAttempt(f callwire.Frame) string {
	text := ""
	switch f.Kind {
	case callwire.KindRelease:
		text = "release"
		if f.Has(callwire.FlagNoCredit) {
			text += " no credit"
		}
	case callwire.KindHead:
		text = tellHead(f)
	case callwire.KindBody:
		text = "body " + tellBytes(f.Payload)
	case callwire.KindEnd:
		text = tellEnd(f)
	case callwire.KindLongWait:
		waited, _ := callwire.ParseLongWait(f)
		text = fmt.Sprintf("long wait %v", waited)
	default:
		text = fmt.Sprintf("kind %d", f.Kind)
	}
	if f.Has(callwire.FlagKeeps) {
		text += " keeps"
	}
	return text
}

func tellHead(f callwire.Frame) string {
	h, err := callwire.ParseHead(f)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("head %d", h.Status)
	if h.Cold {
		text += " cold"
	}
	if h.FunctionError != "" {
		text += " error " + h.FunctionError
	}
	if h.Upgrade != "" {
		text += " to " + h.Upgrade
	}
	if h.ContentLength >= 0 && h.ContentLength != int64(len(h.Body)) {
		text += fmt.Sprintf(" promises %d", h.ContentLength)
	}
	for _, name := range h.Trailer {
		text += " trailer " + name
	}
	if h.Whole {
		text += " whole " + tellBytes(h.Body)
	}
	return text
}

var failureNames = map[callwire.FailureKind]string{
	callwire.FailureFunctionLost: " FUNCTION_LOST", callwire.FailureBadAnswer: " BAD_ANSWER",
	callwire.FailureTimedOut: " TIMED_OUT", callwire.FailureBodyTooLarge: " BODY_TOO_LARGE",
	callwire.FailureUnsendable: " UNSENDABLE", callwire.FailureTooLate: " TOO_LATE",
}

func tellEnd(f callwire.Frame) string {
	e, err := callwire.ParseEnd(f)
	if err != nil {
		return err.Error()
	}
	text := "end" + failureNames[e.Failure]
	for _, field := range e.Trailer {
		text += " " + field.Name + "=" + field.Value
	}
	return text
}

func tellBytes(b []byte) string {
	if len(b) > 32 {
		return fmt.Sprintf("of %d bytes", len(b))
	}
	return fmt.Sprintf("%q", b)
}
