package gateway_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
)

// agent is the agent of an instance, and its connection to the gateway.
type agent struct {
	t       *testing.T
	conn    net.Conn
	wire    *callwire.Conn // for writing
	welcome callwire.Welcome
	// lent has the calls that came by loans, returned the credits that the gateway gave back,
	// and pongs an element for each Pong.
	lent     chan *instance
	returned chan int
	pongs    chan struct{}
	// gone is closed when the gateway has ended the connection.
	gone chan struct{}

	mu     sync.Mutex // guards everything below
	claims uint32     // the number of the last claim
	calls  map[uint32]*instance
}

// instance is one call as an instance sees it.
type instance struct {
	t      *testing.T
	agent  *agent
	number uint32
	out    *callwire.Outflow
	frames chan callwire.Frame // about the call, after the answer to the claim
	// granted is the call, or refused says why there is none.
	granted *callwire.Call
	refused callwire.Refusal
}

// firstCID is that of agents to which it does not matter.
const firstCID = "00000001-000001"

// hello connects an agent to the gateway.
func (w *harness) hello(hello callwire.Hello) *agent {
	w.Helper()
	conn, err := net.Dial("tcp", w.wireAddr)
	if err != nil {
		w.Fatal(err)
	}
	a := newAgent(w.T, conn)
	a.write(hello.Append)
	first, err := a.readFrame()
	if err == nil {
		a.welcome, err = callwire.ParseWelcome(first)
	}
	if err != nil {
		w.Fatalf("greeting: %v", err)
	}
	go a.receive()
	return a
}

func newAgent(t *testing.T, conn net.Conn) *agent {
	t.Cleanup(func() { conn.Close() })
	return &agent{
		t: t, conn: conn, wire: callwire.NewConn(conn, nil), lent: make(chan *instance, 1000), returned: make(chan int, 1000),
		pongs: make(chan struct{}, 1000), gone: make(chan struct{}), calls: make(map[uint32]*instance),
	}
}

// agentOf connects the agent of a CID.
func (w *harness) agentOf(cid string) *agent {
	w.Helper()
	return w.hello(callwire.Hello{CID: cid, ProtocolMin: 1, ProtocolMax: 1})
}

// write writes the frames that add appends.
func (a *agent) write(add func([]byte) []byte) { a.wire.Commit(add(a.wire.Begin())) }

// readFrame reads as little as callwire describes.
func (a *agent) readFrame() (callwire.Frame, error) {
	var head [12]byte
	if _, err := io.ReadFull(a.conn, head[:]); err != nil {
		return callwire.Frame{}, err
	}
	f := callwire.Frame{Kind: callwire.Kind(head[4]), Flags: head[5], Call: binary.BigEndian.Uint32(head[8:])}
	f.Payload = make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(a.conn, f.Payload)
	return f, err
}

// receive gives each frame to the call that it is about, until the connection ends.
func (a *agent) receive() {
	defer a.lose()
	for {
		f, err := a.readFrame()
		if err != nil {
			return
		}
		switch f.Kind {
		case callwire.KindPing:
			a.write(func(b []byte) []byte { return callwire.AppendFrame(b, callwire.KindPong, 0, 0, nil) })
		case callwire.KindPong:
			a.pongs <- struct{}{}
		case callwire.KindReturn:
			n, err := callwire.ParseCount(f)
			if err != nil {
				a.t.Error(err)
			}
			a.returned <- int(n)
		default:
			a.forCall(f)
		}
	}
}

// forCall gives a frame to its call.
func (a *agent) forCall(f callwire.Frame) {
	a.mu.Lock()
	i := a.calls[f.Call]
	if f.Kind == callwire.KindCall && callwire.ByGateway(f.Call) {
		if i != nil {
			a.t.Errorf("call %d came twice", f.Call)
		}
		i = a.addLocked(f.Call)
	}
	a.mu.Unlock()
	switch {
	case i == nil:
		a.t.Errorf("a frame of kind %d came for call %d, which is none", f.Kind, f.Call)
	case f.Kind == callwire.KindCall && callwire.ByGateway(f.Call):
		i.grant(f)
		a.lent <- i
	case f.Kind == callwire.KindWindow:
		n, err := callwire.ParseCount(f)
		if err != nil {
			a.t.Error(err)
		}
		i.out.Open(n)
	default:
		i.frames <- f
	}
}

// lose ends everything that waits for the gateway.
func (a *agent) lose() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.gone)
	for _, i := range a.calls {
		i.out.End(io.EOF)
	}
}

func (a *agent) addLocked(number uint32) *instance {
	i := &instance{t: a.t, agent: a, number: number, out: callwire.NewOutflow(a.wire, number), frames: make(chan callwire.Frame, 1000)}
	a.calls[number] = i
	return i
}

// grant notes the call that came.
func (i *instance) grant(f callwire.Frame) {
	call, err := callwire.ParseCall(f)
	if err != nil {
		i.t.Error(err)
	}
	i.granted = &call
}

// claimLater claims a ticket, and does not wait for what comes.
func (a *agent) claimLater(ticket *agentwire.Ticket) *instance {
	a.mu.Lock()
	if a.claims++; a.claims > 1 {
		a.claims++
	}
	i := a.addLocked(a.claims)
	a.mu.Unlock()
	var claim callwire.Claim
	copy(claim.Invocation[:], ticket.GetInvocationId())
	copy(claim.Token[:], ticket.GetToken())
	a.write(func(b []byte) []byte { return callwire.AppendClaim(b, i.number, claim) })
	return i
}

// claim claims a ticket.
func (a *agent) claim(ticket *agentwire.Ticket) *instance {
	a.t.Helper()
	i := a.claimLater(ticket)
	if !i.answered() {
		a.t.Fatal("the gateway ended the connection instead of answering a claim")
	}
	return i
}

// answered waits for the answer to a claim; false if the connection ends before.
func (i *instance) answered() bool {
	i.t.Helper()
	f, err := i.next()
	if err != nil {
		return false
	}
	switch f.Kind {
	case callwire.KindCall:
		i.grant(f)
	case callwire.KindRefused:
		if i.refused, err = callwire.ParseRefused(f); err != nil || i.refused == 0 {
			i.t.Fatalf("refused with %d, %v", i.refused, err)
		}
	default:
		i.t.Fatalf("a claim was answered with kind %d", f.Kind)
	}
	return true
}

// next is the next frame about the call; io.EOF once the gateway has ended the connection.
func (i *instance) next() (callwire.Frame, error) {
	i.t.Helper()
	select {
	case f := <-i.frames:
		return f, nil
	case <-i.agent.gone:
	}
	select {
	case f := <-i.frames:
		return f, nil
	default:
		return callwire.Frame{}, io.EOF
	}
}

// claim claims a ticket for an instance with a connection of its own.
func (w *harness) claim(ticket *agentwire.Ticket) *instance {
	w.Helper()
	return w.agentOf(firstCID).claim(ticket)
}

// take claims tickets until it is granted a call: a ticket may have been offered twice.
func (w *harness) take() *instance {
	w.Helper()
	return w.takeBy(firstCID)
}

// takeBy is take for an instance.
func (w *harness) takeBy(cid string) *instance {
	w.Helper()
	for {
		if i := w.agentOf(cid).claim(w.scheduler.ticket()); i.granted != nil {
			return i
		}
	}
}

// byLoan is the next call that comes by a loan.
func (a *agent) byLoan() *instance {
	a.t.Helper()
	return receive(a.t, a.lent, "a call by a loan")
}

// credits sends a Lend or a TakeBack.
func (a *agent) credits(kind callwire.Kind, n uint32) {
	a.write(func(b []byte) []byte { return callwire.AppendCount(b, kind, 0, n) })
}

// ping waits until the gateway has handled everything that was sent before.
func (a *agent) ping() {
	a.t.Helper()
	a.write(func(b []byte) []byte { return callwire.AppendFrame(b, callwire.KindPing, 0, 0, nil) })
	receive(a.t, a.pongs, "a pong")
}

// die breaks the connection as the end of the instance would.
func (i *instance) die() { i.agent.conn.Close() }

// hangUp ends the agent's side of the connection.
func (i *instance) hangUp() { _ = i.agent.conn.(*net.TCPConn).CloseWrite() }

// sendHead sends the head of an answer. One without a length says that it has none.
func (i *instance) sendHead(h callwire.Head) {
	i.agent.write(func(b []byte) []byte { return h.Append(b, i.number) })
}

// head begins an answer; name and value pairs are its headers.
func (i *instance) head(status int, headers ...string) {
	i.sendHead(callwire.Head{Status: status, Header: fields(headers), ContentLength: -1})
}

// whole is an answer in one message.
func (i *instance) whole(status int, body string, headers ...string) {
	i.sendHead(callwire.Head{Status: status, Header: fields(headers), ContentLength: -1, Whole: true, Body: []byte(body)})
}

// keep is whole for an instance that keeps the call's place for the gateway.
func (i *instance) keep(status int, body string) {
	i.sendHead(callwire.Head{Status: status, ContentLength: -1, Whole: true, Body: []byte(body), Keeps: true})
}

func fields(pairs []string) (fields []callwire.Field) {
	for n := 0; n < len(pairs); n += 2 {
		fields = append(fields, callwire.Field{Name: pairs[n], Value: pairs[n+1]})
	}
	return fields
}

// body sends more of the answer, as far as the gateway's window allows. It ends with the
// connection.
func (i *instance) body(body string) { _, _ = i.out.Write([]byte(body)) }

func (i *instance) sendEnd(e callwire.End) {
	i.agent.write(func(b []byte) []byte { return e.Append(b, i.number) })
}

func (i *instance) end() { i.sendEnd(callwire.End{}) }

func (i *instance) fail(kind callwire.FailureKind, detail string) {
	i.sendEnd(callwire.End{Failure: kind, Detail: detail})
}

func (i *instance) release(reason string) { i.sendRelease(callwire.Release{Reason: reason}) }

func (i *instance) sendRelease(l callwire.Release) {
	i.agent.write(func(b []byte) []byte { return l.Append(b, i.number) })
}

// upload is what an instance was sent after the call.
type upload struct {
	body      bytes.Buffer
	whole     bool // an End came that was not cut
	aborted   bool // an End came that was
	trailer   []callwire.Field
	cancelled bool
	err       error // end of the connection; nil if reading stopped before it
}

// add notes a frame, and opens the window for a part of a body.
func (u *upload) add(i *instance, f callwire.Frame) {
	i.t.Helper()
	switch f.Kind {
	case callwire.KindBody:
		u.body.Write(f.Payload)
		i.agent.write(func(b []byte) []byte {
			return callwire.AppendCount(b, callwire.KindWindow, i.number, uint32(len(f.Payload)))
		})
	case callwire.KindEnd:
		end, err := callwire.ParseEnd(f)
		if err != nil || u.whole || u.aborted {
			i.t.Errorf("an end that makes no sense: %+v, %v", end, err)
		}
		u.aborted, u.whole, u.trailer = end.Cut, !end.Cut, end.Trailer
	case callwire.KindCancel:
		u.cancelled = true
	default:
		i.t.Errorf("a frame of kind %d came for a call", f.Kind)
	}
}

// read reads what the gateway sends about the call until stop is content, or until the
// connection ends.
func (i *instance) read(stop func(u *upload) bool) *upload {
	i.t.Helper()
	u := &upload{}
	for !stop(u) {
		f, err := i.next()
		if err != nil {
			u.err = err
			return u
		}
		u.add(i, f)
	}
	return u
}

func bodyEnded(u *upload) bool { return u.whole || u.aborted }

// cancelled reads until the gateway cancels the call.
func (i *instance) cancelled() {
	i.t.Helper()
	if u := i.read(func(u *upload) bool { return u.cancelled }); !u.cancelled {
		i.t.Errorf("the call was not cancelled, but ended with %v", u.err)
	}
}

// ended waits until the gateway has handled everything that the instance sent, checks that the
// connection goes on, and returns what has come about the call.
func (i *instance) ended() *upload {
	i.t.Helper()
	i.agent.ping()
	u := &upload{}
	for {
		select {
		case f := <-i.frames:
			u.add(i, f)
		default:
			return u
		}
	}
}

// broken waits until the gateway has ended the connection.
func (a *agent) broken() {
	a.t.Helper()
	receive(a.t, a.gone, "the end of the connection")
}

// fakeGuard counts what a gateway says of a connection's agent.
type fakeGuard struct {
	mu                   sync.Mutex
	proven, right, wrong int
}

func (g *fakeGuard) Prove() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proven++
}

func (g *fakeGuard) CountToken(right bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if right {
		g.right++
	} else {
		g.wrong++
	}
}

// serveWire serves agents.
func (w *harness) serveWire(l net.Listener) {
	var serving sync.WaitGroup
	w.wireAddr = l.Addr().String()
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				err := w.gateway.ServeAgent(callwire.NewConn(c, nil), w.guard)
				if err == nil || errors.Is(err, callwire.ErrSilent) {
					w.Errorf("an agent was served until %v", err)
				}
			})
		}
	})
	w.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
}
