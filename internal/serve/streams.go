package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
)

// errShutdown says that the server ends.
var errShutdown = errors.New("serve: the server ends")

// agentStreams are the streams that each agent has for as long as it lives, by their services.
var agentStreams = map[string]struct {
	method  string
	longest int // of its messages, in bytes
}{
	agentwire.Instances_ServiceDesc.ServiceName: {agentwire.Instances_Pull_FullMethodName, wire.MaxMessage},
	nodewire.Node_ServiceDesc.ServiceName:       {nodewire.Node_Compute_FullMethodName, wire.MaxNodeMessage},
}

// streamServer serves the streams of agents of a WireServer, by HTTP/2 as gRPC speaks it, with one
// goroutine for a connection and a third of the memory that gRPC's server takes for one. Its
// clients are gRPC's. A connection whose first stream is of another method goes on to gRPC's server.
type streamServer struct {
	wire    *WireServer
	methods map[string]streamMethod

	mu    sync.Mutex
	conns map[*streamConn]struct{} // nil once the server ends
}

// streamMethod is what serves the streams of a method.
type streamMethod struct {
	service any
	handler grpc.StreamHandler
	longest int // of its messages, in bytes
}

// RegisterService implements grpc.ServiceRegistrar. Streams of agents are served by this package.
func (s *WireServer) RegisterService(of *grpc.ServiceDesc, service any) {
	stream, ours := agentStreams[of.ServiceName]
	if !ours {
		s.Server.RegisterService(of, service)
		return
	}
	s.agents.methods[stream.method] = streamMethod{service, of.Streams[0].Handler, stream.longest}
}

// Wire serves until ctx ends or the listener fails, and returns once all handlers have. Streams that
// are open then are cut.
func Wire(ctx context.Context, l net.Listener, server *WireServer) error {
	server.others.addr = l.Addr()
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { _ = server.Serve(server.others) })
	defer server.Stop()
	defer server.agents.shut()
	return acceptAll(ctx, l, func(raw net.Conn) {
		callwire.NoticeDeadPeer(raw)
		peer := &agentPeer{peerConn: newPeerConn(rawtcp.Wrap(raw), server.strangers, time.Now())}
		if surplus := server.strangers.admit(peer.peerConn); surplus != nil {
			_ = surplus.Close()
		}
		serving.Go(func() { server.agents.meet(peer, &serving) })
	})
}

// meet makes the handshake, and lets another goroutine converse: a handshake needs a large stack,
// which the conversation would keep however long it is idle.
func (s *streamServer) meet(peer *agentPeer, serving *sync.WaitGroup) {
	c := newStreamConn(s, peer)
	_ = peer.SetDeadline(time.Now().Add(handshakeWithin))
	if !s.add(c) {
		_ = peer.Close()
		return
	}
	secured, auth, err := s.wire.secure.ServerHandshake(peer)
	if err != nil {
		s.forget(c)
		_ = peer.Close()
		return
	}
	_ = peer.SetDeadline(time.Time{})
	c.in, c.out.to = io.Reader(secured), secured
	if secured == net.Conn(peer) {
		c.in = bufio.NewReaderSize(secured, readBuffer) // TLS has a buffer of its own
	}
	serving.Go(func() { c.converse(auth) })
}

// add lets a connection be known; it is false once the server ends.
func (s *streamServer) add(c *streamConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *streamServer) forget(c *streamConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// shut ends all connections, each in its own goroutine.
func (s *streamServer) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.closing.Store(true)
		c.wake()
	}
	s.conns = nil
}

// handOver passes a connection on to gRPC's server, with what was read from it.
func (s *streamServer) handOver(c *streamConn, auth credentials.AuthInfo) {
	s.forget(c)
	_ = c.peer.SetDeadline(time.Time{})
	c.peer.handed = true
	s.wire.others.pass(&handedConn{Conn: c.out.to, in: io.MultiReader(bytes.NewReader(c.replay), c.in), auth: auth})
}

// handedOver is the listener of gRPC's server.
type handedOver struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	// closed is closed by gRPC's server.
	closed chan struct{}
}

// pass lets gRPC's server have a connection, or closes it if the server has ended.
func (h *handedOver) pass(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (h *handedOver) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handedOver) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *handedOver) Addr() net.Addr { return h.addr }

// handedConn is a connection that has had its handshake.
type handedConn struct {
	net.Conn
	in   io.Reader
	auth credentials.AuthInfo
}

// Read implements net.Conn.
func (c *handedConn) Read(p []byte) (int, error) { return c.in.Read(p) }

// handshaken are credentials for connections that have had their handshake.
type handshaken struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (handshaken) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	handed := c.(*handedConn)
	return handed, handed.auth, nil
}

// Clone implements credentials.TransportCredentials.
func (h handshaken) Clone() credentials.TransportCredentials {
	return handshaken{h.TransportCredentials.Clone()}
}
