package podagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

const (
	// connectTimeout bounds the time from a dial to the gateway's welcome.
	connectTimeout = 5 * time.Second
	// closeTimeout bounds how long a gateway may take to read the last answers.
	closeTimeout = 2 * time.Second
	// resumableFor is how long the agent remembers a broken connection, so that the next hello
	// can say which calls came. A gateway waits for less than a second.
	resumableFor = 5 * time.Second
)

var (
	errUnsupported = errors.New("podagent: the gateway does not speak this agent's protocol")
	errGatewayLost = errors.New("podagent: the gateway of the call is lost")
)

// gatewayConn is a connection to a gateway, or the attempt to make one. One goroutine reads. It never
// writes, and it holds the agent's lock only for moments, so that no two readers wait for each
// other.
type gatewayConn struct {
	agent  *Agent
	number core.Conn
	addr   string
	// stop ends the attempt to connect.
	stop context.CancelFunc

	// The agent's lock guards everything below.

	// frames is nil until the gateway has said welcome, and resume is what it said then.
	frames *callwire.Conn
	resume [16]byte
	// calls are the claims and calls of the connection, by their numbers. claimed is the number
	// of the last Claim, and seen that of the last Call by a credit.
	calls         map[uint32]*attempt
	claimed, seen uint32
	// closing says that the agent closes the connection.
	closing bool
}

// resumable is what the next hello to a gateway says about a connection that broke.
type resumable struct {
	token [16]byte
	seen  uint32
	until time.Time
}

// connect dials a gateway. The connection outlives the context of Run. The caller holds the lock.
func (a *Agent) connect(e core.Connect) {
	ctx, stop := context.WithTimeout(context.Background(), connectTimeout)
	cn := &gatewayConn{agent: a, number: e.Conn, addr: e.Addr, stop: stop, calls: make(map[uint32]*attempt)}
	a.conns[e.Conn] = cn
	hello := callwire.Hello{
		CID: a.identity.cid, ProtocolMin: wire.AgentProtocols.Min, ProtocolMax: wire.AgentProtocols.Max,
		Features: wire.AgentProtocols.Features, Release: buildinfo.Version,
	}
	if r, broke := a.resumables[e.Addr]; broke && time.Now().Before(r.until) {
		hello.Resume, hello.Seen = r.token, r.seen
	}
	a.tasks.Go(func() {
		defer stop()
		a.connOver(cn, cn.run(ctx, hello))
	})
}

// disconnect closes a connection, or ends the attempt to make one. The caller holds the lock.
func (cn *gatewayConn) disconnect() {
	cn.closing = true
	cn.stop()
	if frames := cn.frames; frames != nil {
		cn.agent.tasks.Go(func() { frames.CloseWrite(closeTimeout) })
	}
}

// run makes the connection and serves it until it ends.
func (cn *gatewayConn) run(ctx context.Context, hello callwire.Hello) error {
	to, err := cn.agent.dialGateway(ctx, cn.addr)
	if err != nil {
		return err
	}
	conn := callwire.NewConn(to, nil)
	defer conn.Close()
	welcome, err := greet(ctx, conn, hello)
	if err != nil {
		return err
	}
	if !cn.opened(conn, welcome) {
		return callwire.ErrClosed
	}
	for {
		f, err := conn.Read()
		if err != nil {
			return err
		}
		if err := cn.onFrame(f); err != nil {
			return err
		}
	}
}

// greet says hello and waits for the welcome.
func greet(ctx context.Context, conn *callwire.Conn, hello callwire.Hello) (callwire.Welcome, error) {
	late := context.AfterFunc(ctx, conn.Close)
	conn.CommitLater(hello.Append(conn.Begin()))
	conn.FlushLater()
	first, err := conn.Read()
	if err != nil {
		return callwire.Welcome{}, err
	}
	welcome, err := callwire.ParseWelcome(first)
	if err != nil {
		return welcome, err
	}
	_, understood := wire.AgentProtocols.Accept(&agentwire.Welcome{Protocol: welcome.Protocol, Features: welcome.Features})
	switch {
	case welcome.Protocol == 0 || !understood:
		return welcome, fmt.Errorf("%w: it is of release %q and speaks protocol %d", errUnsupported, welcome.Release, welcome.Protocol)
	case !late():
		return welcome, context.Cause(ctx)
	}
	return welcome, nil
}

// opened reports the connection to the core, unless the agent has closed it meanwhile.
func (cn *gatewayConn) opened(conn *callwire.Conn, w callwire.Welcome) bool {
	a := cn.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if cn.closing {
		return false
	}
	cn.frames, cn.resume = conn, w.Resume
	delete(a.resumables, cn.addr)
	a.step(core.ConnOpened{Conn: cn.number}, nil)
	return true
}

// connOver reports the end of a connection to the core, and ends what the gateway would have
// sent and taken of its calls.
func (a *Agent) connOver(cn *gatewayConn, why error) {
	a.mu.Lock()
	left := cn.calls
	cn.calls = nil
	for _, at := range left {
		if !at.granted() {
			delete(a.attempts, at.number)
		}
	}
	delete(a.conns, cn.number)
	if cn.frames != nil && !cn.closing {
		now := time.Now()
		maps.DeleteFunc(a.resumables, func(_ string, r resumable) bool { return !now.Before(r.until) })
		a.resumables[cn.addr] = resumable{token: cn.resume, seen: cn.seen, until: now.Add(resumableFor)}
	}
	closing := cn.closing
	a.step(core.ConnLost{Conn: cn.number}, nil)
	a.mu.Unlock()
	if !closing {
		a.deps.Log.Warn("a gateway is lost or cannot be reached", "addr", cn.addr, "calls", len(left), "err", why)
	}
	for _, at := range left {
		at.gatewayLost()
	}
}

// onFrame handles a frame of the gateway. An error ends the connection.
func (cn *gatewayConn) onFrame(f callwire.Frame) error {
	switch f.Kind {
	case callwire.KindCall:
		return cn.onCall(f)
	case callwire.KindReturn:
		n, err := callwire.ParseCount(f)
		if err == nil {
			cn.agent.notify(core.Returned{Conn: cn.number, Credits: int(n)})
		}
		return err
	case callwire.KindRefused:
		return cn.onRefused(f)
	case callwire.KindBody, callwire.KindEnd, callwire.KindWindow, callwire.KindCancel, callwire.KindGiveUp:
		at, err := cn.running(f.Call)
		if at == nil || err != nil {
			return err
		}
		return at.onFrame(f)
	}
	return fmt.Errorf("%w: a gateway sends no frame of kind %d", callwire.ErrFrame, f.Kind)
}

// running is a call that runs. It is nil if the call has ended, or its claim was given up, which
// the gateway may not have known.
func (cn *gatewayConn) running(number uint32) (*attempt, error) {
	cn.agent.mu.Lock()
	defer cn.agent.mu.Unlock()
	at := cn.calls[number]
	if at != nil && !at.granted() {
		return nil, fmt.Errorf("%w: a frame of a call came before the call", callwire.ErrFrame)
	}
	return at, nil
}

// onCall takes a call that was claimed, or one by a credit.
func (cn *gatewayConn) onCall(f callwire.Frame) error {
	message, err := callwire.ParseCall(f)
	if err != nil {
		return err
	}
	a := cn.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if !callwire.ByGateway(f.Call) {
		at := cn.calls[f.Call]
		switch {
		case at == nil: // the release of the claim is on its way
			return nil
		case at.granted() || at.id != message.Invocation:
			return fmt.Errorf("%w: a claim was answered twice, or with another call", callwire.ErrFrame)
		}
		at.receive(&message, at.claimedAt)
		a.step(core.Granted{Attempt: at.number}, nil)
		return nil
	}
	if f.Call <= cn.seen {
		return fmt.Errorf("%w: the numbers of calls do not rise", callwire.ErrFrame)
	}
	cn.seen = f.Call
	at := &attempt{agent: a, conn: cn, wire: f.Call, id: message.Invocation}
	at.receive(&message, time.Now())
	a.arrived = at
	a.step(core.Called{Conn: cn.number, Call: f.Call, ID: message.Invocation, Remaining: message.Remaining}, nil)
	a.arrived = nil
	if at.number == 0 { // it was declined
		at.cancel(nil)
	}
	return nil
}

func (cn *gatewayConn) onRefused(f callwire.Frame) error {
	if _, err := callwire.ParseRefused(f); err != nil {
		return err
	}
	a := cn.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	at := cn.calls[f.Call]
	switch {
	case at == nil:
		return nil
	case at.granted():
		return fmt.Errorf("%w: a claim was answered twice", callwire.ErrFrame)
	}
	at.forget()
	a.step(core.Refused{Attempt: at.number}, nil)
	return nil
}

// send appends frames and lets another goroutine write them. The caller holds the agent's lock,
// which the reader needs, so it must not write itself.
func (cn *gatewayConn) send(add func([]byte) []byte) {
	if cn == nil || cn.frames == nil {
		return
	}
	cn.frames.CommitLater(add(cn.frames.Begin()))
	cn.frames.FlushLater()
}

func (cn *gatewayConn) sendCount(kind callwire.Kind, n int) {
	cn.send(func(b []byte) []byte { return callwire.AppendCount(b, kind, 0, uint32(n)) })
}

func (cn *gatewayConn) tellNode(busy bool) {
	cn.send(func(b []byte) []byte { return callwire.AppendNode(b, busy) })
}

// decline releases a call by a credit that the agent has taken back.
func (cn *gatewayConn) decline(call uint32) {
	cn.send((func(b []byte) []byte {
		r := callwire.Release{Reason: "the instance has taken the place back", NoCredit: true}
		return r.Append(b, call)
	}))
}

// claim sends a claim. The caller holds the agent's lock.
func (a *Agent) claim(e core.Claim) {
	cn := a.conns[e.Conn]
	if cn.claimed == 0 {
		cn.claimed = 1
	} else {
		cn.claimed += 2
	}
	at := &attempt{agent: a, number: e.Attempt, conn: cn, wire: cn.claimed, id: e.Ticket.ID, claimedAt: time.Now()}
	a.attempts[e.Attempt], cn.calls[at.wire] = at, at
	claim := callwire.Claim{Invocation: e.Ticket.ID, Token: e.Ticket.Token}
	cn.send(func(b []byte) []byte { return callwire.AppendClaim(b, at.wire, claim) })
}

// bodyEnd is what follows the parts of a request's body.
func bodyEnd(e callwire.End) error {
	if e.Cut {
		return errBodyCut
	}
	return io.EOF
}
