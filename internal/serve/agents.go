package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
)

const (
	// maxWrong is how many wrong tokens in a row end a connection. An honest agent has none: an old
	// ticket of a call is not a wrong one.
	maxWrong = 32
	// callMethod is what agents' connections are counted as.
	callMethod = "callwire"
	// Pauses after an error of a listener, such as too many open files.
	firstPause, longestPause = 5 * time.Millisecond, time.Second
)

var (
	errUnproven  = errors.New("serve: the agent has sent much and proven nothing")
	errGuesses   = errors.New("serve: the agent guesses tokens")
	errProtocol  = errors.New("serve: the client did not agree on callwire in the handshake")
	errHandshake = errors.New("serve: the handshake failed")
)

// AgentHandler serves the connection of an agent until it ends. It returns soon after the
// connection was closed.
type AgentHandler interface {
	ServeAgent(conn *callwire.Conn, guard AgentGuard) error
}

// AgentGuard watches over the connection of an agent. Prove says that the agent has sent a valid
// claim, so that the connection does not count as a stranger's any more. CountToken counts a right
// or a wrong token; too many wrong ones in a row end the connection. The handler calls Trust of
// the connection itself, since only its reader may.
type AgentGuard = interface {
	Prove()
	CountToken(right bool)
}

// AgentServer serves agents' connections.
type AgentServer struct {
	tls       *tls.Config
	handler   AgentHandler
	guard     *guard
	strangers *strangerLimiter
}

// NewAgents makes a server for Agents. It counts what it refuses. Without a TLS configuration it
// does not encrypt.
func NewAgents(reg prometheus.Registerer, secure *tls.Config, handler AgentHandler) *AgentServer {
	return &AgentServer{tls: secure, handler: handler, guard: newGuard(reg), strangers: newStrangerLimiter(reg)}
}

// Agents serves until ctx ends. Connections that are open then are closed, and Agents returns
// once their handlers have. It closes the listener.
func Agents(ctx context.Context, l net.Listener, server *AgentServer) error {
	// Handlers also end if the listener fails.
	handling, cancel := context.WithCancel(ctx)
	var handlers sync.WaitGroup
	defer handlers.Wait()
	defer cancel()
	return acceptAll(ctx, l, func(conn net.Conn) {
		handlers.Go(func() { server.serve(handling, conn, &handlers) })
	})
}

// acceptAll accepts connections until ctx ends or the listener fails, and closes it.
func acceptAll(ctx context.Context, l net.Listener, serve func(net.Conn)) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for pause := firstPause; ; {
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = firstPause
			serve(conn)
		case ctx.Err() != nil:
			return nil
		case !isTemporary(err):
			return err
		default:
			wait(ctx, pause)
			pause = min(2*pause, longestPause)
		}
	}
}

// isTemporary reports whether a listener may accept again after an error.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

func wait(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

// serve serves one connection, and closes it. Handshake and conversation have a goroutine each: a
// handshake needs a large stack, which the conversation would keep however long it is idle.
func (s *AgentServer) serve(ctx context.Context, raw net.Conn, handlers *sync.WaitGroup) {
	callwire.NoticeDeadPeer(raw)
	peer := &agentPeer{peerConn: newPeerConn(rawtcp.Wrap(raw), s.strangers, time.Now())}
	stop := context.AfterFunc(ctx, func() { _ = peer.Close() })
	if surplus := s.strangers.admit(peer.peerConn); surplus != nil {
		_ = surplus.Close()
	}
	secured, err := s.handshake(ctx, peer)
	if err != nil {
		s.over(peer, err, stop)
		return
	}
	handlers.Go(func() { s.over(peer, s.converse(secured, peer), stop) })
}

// over closes a connection, and counts its end if the client did something wrong.
func (s *AgentServer) over(peer *agentPeer, err error, stop func() bool) {
	defer stop()
	defer func() { _ = peer.Close() }()
	if why := peer.why.Load(); why != nil {
		err = *why
	}
	if code := refusalOf(err); code != codes.OK {
		s.guard.refused.WithLabelValues(callMethod, code.String()).Inc()
	}
}

// converse lets the handler serve after the handshake.
func (s *AgentServer) converse(secured net.Conn, peer *agentPeer) error {
	conn := callwire.Accept(secured, firstMessageTimeout, func(callwire.Kind) { s.guard.unknown.WithLabelValues("Frame").Inc() })
	defer conn.Close()
	return s.handler.ServeAgent(conn, peer)
}

func (s *AgentServer) handshake(ctx context.Context, peer *agentPeer) (net.Conn, error) {
	if s.tls == nil {
		return peer, nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	secured := tls.Server(peer, s.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(errHandshake, err)
	}
	if secured.ConnectionState().NegotiatedProtocol != callwire.ALPN {
		return nil, errProtocol
	}
	return secured, nil
}

// refusalOf is how the end of a connection is counted; OK if the client did nothing wrong.
func refusalOf(err error) codes.Code {
	switch {
	case errors.Is(err, errGuesses):
		return codes.Unauthenticated
	case errors.Is(err, errUnproven):
		return codes.ResourceExhausted
	case errors.Is(err, callwire.ErrLate):
		return codes.DeadlineExceeded
	case errors.Is(err, callwire.ErrFrame):
		return codes.InvalidArgument
	case errors.Is(err, errProtocol):
		return codes.FailedPrecondition
	}
	return codes.OK
}

// agentPeer is the connection of an agent, below TLS. A stranger's ends once it has sent
// strangerBytes without a valid claim: that is a thousand claims, and the agent connects again.
type agentPeer struct {
	*peerConn
	read   int                   // from a stranger; the reader's
	handed bool                  // to a server of gRPC, whose methods are not for strangers
	wrong  atomic.Int32          // tokens in a row
	why    atomic.Pointer[error] // why this side has ended it; nil for no reason of the client's
}

// Prove implements AgentGuard.
func (p *agentPeer) Prove() { p.prove() }

// CountToken implements AgentGuard.
func (p *agentPeer) CountToken(right bool) {
	if right {
		p.wrong.Store(0)
	} else if p.wrong.Add(1) >= maxWrong {
		p.end(errGuesses)
	}
}

// end closes the connection for a reason; the first one counts.
func (p *agentPeer) end(why error) {
	p.why.CompareAndSwap(nil, &why)
	_ = p.Close()
}

// Read implements net.Conn.
func (p *agentPeer) Read(b []byte) (int, error) {
	switch {
	case p.handed, p.proven.Load():
		return p.Conn.Read(b)
	case p.read >= strangerBytes:
		p.end(errUnproven)
		return 0, errUnproven
	}
	n, err := p.Conn.Read(b[:min(len(b), strangerBytes-p.read)])
	p.read += n
	return n, err
}

// CloseWrite implements what callwire needs to end one direction.
func (p *agentPeer) CloseWrite() error {
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
