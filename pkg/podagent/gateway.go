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

// gateway is a connection to a gateway, or the attempt to make one. One goroutine reads. It never
// writes, and it holds the agent's lock only for moments, so that no two readers wait for each
// other.
type gateway struct {
	agent  *Agent
	number core.Gateway
	addr   string
	// stop ends the attempt to connect.
	stop context.CancelFunc

	// The agent's lock guards everything below.

	// conn is nil until the gateway has said welcome, and resume is what it said then.
	conn   *callwire.Conn
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
	g := &gateway{agent: a, number: e.Gateway, addr: e.Addr, stop: stop, calls: make(map[uint32]*attempt)}
	a.gateways[e.Gateway] = g
	hello := callwire.Hello{
		CID: a.identity.cid, ProtocolMin: wire.AgentProtocols.Min, ProtocolMax: wire.AgentProtocols.Max,
		Features: wire.AgentProtocols.Features, Release: buildinfo.Version,
	}
	if r, broke := a.resumables[e.Addr]; broke && time.Now().Before(r.until) {
		hello.Resume, hello.Seen = r.token, r.seen
	}
	a.tasks.Go(func() {
		defer stop()
		a.gatewayOver(g, g.run(ctx, hello))
	})
}

// disconnect closes a connection, or ends the attempt to make one. The caller holds the lock.
func (g *gateway) disconnect() {
	g.closing = true
	g.stop()
	if conn := g.conn; conn != nil {
		g.agent.tasks.Go(func() { conn.CloseWrite(closeTimeout) })
	}
}

// run makes the connection and serves it until it ends.
func (g *gateway) run(ctx context.Context, hello callwire.Hello) error {
	to, err := g.agent.dialGateway(ctx, g.addr)
	if err != nil {
		return err
	}
	conn := callwire.NewConn(to, nil)
	defer conn.Close()
	welcome, err := greet(ctx, conn, hello)
	if err != nil {
		return err
	}
	if !g.opened(conn, welcome) {
		return callwire.ErrClosed
	}
	for {
		f, err := conn.Read()
		if err != nil {
			return err
		}
		if err := g.onFrame(f); err != nil {
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
func (g *gateway) opened(conn *callwire.Conn, w callwire.Welcome) bool {
	a := g.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.closing {
		return false
	}
	g.conn, g.resume = conn, w.Resume
	delete(a.resumables, g.addr)
	a.step(core.GatewayOpened{Gateway: g.number}, nil)
	return true
}

// gatewayOver reports the end of a connection to the core, and ends what the gateway would have
// sent and taken of its calls.
func (a *Agent) gatewayOver(g *gateway, why error) {
	a.mu.Lock()
	left := g.calls
	g.calls = nil
	for _, at := range left {
		if !at.granted() {
			delete(a.attempts, at.number)
		}
	}
	delete(a.gateways, g.number)
	if g.conn != nil && !g.closing {
		now := time.Now()
		maps.DeleteFunc(a.resumables, func(_ string, r resumable) bool { return !now.Before(r.until) })
		a.resumables[g.addr] = resumable{token: g.resume, seen: g.seen, until: now.Add(resumableFor)}
	}
	closing := g.closing
	a.step(core.GatewayLost{Gateway: g.number}, nil)
	a.mu.Unlock()
	if !closing {
		a.deps.Log.Warn("a gateway is lost or cannot be reached", "addr", g.addr, "calls", len(left), "err", why)
	}
	for _, at := range left {
		at.gatewayLost()
	}
}

// onFrame handles a frame of the gateway. An error ends the connection.
func (g *gateway) onFrame(f callwire.Frame) error {
	switch f.Kind {
	case callwire.KindCall:
		return g.onCall(f)
	case callwire.KindReturn:
		n, err := callwire.ParseCount(f)
		if err == nil {
			g.agent.notify(core.Returned{Gateway: g.number, Credits: int(n)})
		}
		return err
	case callwire.KindRefused:
		return g.onRefused(f)
	case callwire.KindBody, callwire.KindEnd, callwire.KindWindow, callwire.KindCancel, callwire.KindGiveUp:
		at, err := g.running(f.Call)
		if at == nil || err != nil {
			return err
		}
		return at.onFrame(f)
	}
	return fmt.Errorf("%w: a gateway sends no frame of kind %d", callwire.ErrFrame, f.Kind)
}

// running is a call that runs. It is nil if the call has ended, or its claim was given up, which
// the gateway may not have known.
func (g *gateway) running(number uint32) (*attempt, error) {
	g.agent.mu.Lock()
	defer g.agent.mu.Unlock()
	at := g.calls[number]
	if at != nil && !at.granted() {
		return nil, fmt.Errorf("%w: a frame of a call came before the call", callwire.ErrFrame)
	}
	return at, nil
}

// onCall takes a call that was claimed, or one by a credit.
func (g *gateway) onCall(f callwire.Frame) error {
	message, err := callwire.ParseCall(f)
	if err != nil {
		return err
	}
	a := g.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if !callwire.ByGateway(f.Call) {
		at := g.calls[f.Call]
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
	if f.Call <= g.seen {
		return fmt.Errorf("%w: the numbers of calls do not rise", callwire.ErrFrame)
	}
	g.seen = f.Call
	at := &attempt{agent: a, gateway: g, wire: f.Call, id: message.Invocation}
	at.receive(&message, time.Now())
	a.arrived = at
	a.step(core.Called{Gateway: g.number, Call: f.Call, ID: message.Invocation, Remaining: message.Remaining}, nil)
	a.arrived = nil
	if at.number == 0 { // it was declined
		at.cancel(nil)
	}
	return nil
}

func (g *gateway) onRefused(f callwire.Frame) error {
	if _, err := callwire.ParseRefused(f); err != nil {
		return err
	}
	a := g.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	at := g.calls[f.Call]
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
func (g *gateway) send(frames func([]byte) []byte) {
	if g == nil || g.conn == nil {
		return
	}
	g.conn.CommitLater(frames(g.conn.Begin()))
	g.conn.FlushLater()
}

func (g *gateway) sendCount(kind callwire.Kind, n int) {
	g.send(func(b []byte) []byte { return callwire.AppendCount(b, kind, 0, uint32(n)) })
}

func (g *gateway) tellNode(busy bool) {
	g.send(func(b []byte) []byte { return callwire.AppendNode(b, busy) })
}

// decline releases a call by a credit that the agent has taken back.
func (g *gateway) decline(call uint32) {
	g.send((func(b []byte) []byte {
		r := callwire.Release{Reason: "the instance has taken the place back", NoCredit: true}
		return r.Append(b, call)
	}))
}

// claim sends a claim. The caller holds the agent's lock.
func (a *Agent) claim(e core.Claim) {
	g := a.gateways[e.Gateway]
	if g.claimed == 0 {
		g.claimed = 1
	} else {
		g.claimed += 2
	}
	at := &attempt{agent: a, number: e.Attempt, gateway: g, wire: g.claimed, id: e.Ticket.ID, claimedAt: time.Now()}
	a.attempts[e.Attempt], g.calls[at.wire] = at, at
	claim := callwire.Claim{Invocation: e.Ticket.ID, Token: e.Ticket.Token}
	g.send(func(b []byte) []byte { return callwire.AppendClaim(b, at.wire, claim) })
}

// bodyEnd is what follows the parts of a request's body.
func bodyEnd(e callwire.End) error {
	if e.Cut {
		return errBodyCut
	}
	return io.EOF
}
