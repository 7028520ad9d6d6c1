package podagent

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
)

// Windows of flow control, in bytes: what a peer may send that was not read yet.
// gRPC would let them grow to 16 MiB, and measure with pings how far, which costs
// a wake-up per call.
const (
	streamWindow = 64 << 10
	connWindow   = 1 << 20
)

// Pauses between two tries of gRPC to connect to a scheduler.
const (
	reconnectPause        = 20 * time.Millisecond
	longestReconnectPause = 250 * time.Millisecond
)

// Dialer makes connections to schedulers and gateways. Its zero value does not
// encrypt them.
type Dialer struct {
	// Schedulers and Nodes say how schedulers and node agents prove their identity.
	Schedulers, Nodes credentials.TransportCredentials
	// Gateways is for handshakes with gateways, which agree on callwire.ALPN.
	Gateways *tls.Config
	// Dial connects to the address of a gateway, below TLS; nil is TCP. Tests replace it.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// Scheduler makes a connection to a scheduler.
func (d Dialer) Scheduler(addr string) (*grpc.ClientConn, error) { return dial(addr, d.Schedulers) }

// Node makes a connection to the node agent.
func (d Dialer) Node(addr string) (*grpc.ClientConn, error) { return dial(addr, d.Nodes) }

// Gateway connects to a gateway, for callwire.
func (d Dialer) Gateway(ctx context.Context, addr string) (net.Conn, error) {
	connect := d.Dial
	if connect == nil {
		connect = dialTCP
	}
	c, err := connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	if c = rawtcp.Wrap(c); d.Gateways == nil {
		return c, nil
	}
	secured := tls.Client(c, d.Gateways)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secured, nil
}

// dial makes a connection as an agent needs it: it connects on first use, notices a dead peer
// within seconds, reconnects soon after its peer is back, and keeps little memory.
func dial(addr string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(dialWire),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnectPause, Multiplier: 2, Jitter: 0.2, MaxDelay: longestReconnectPause},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithReadBufferSize(4<<10),
		grpc.WithWriteBufferSize(4<<10),
		grpc.WithDisableServiceConfig(),
	)
}

// dialWire connects for gRPC, with raw reads and writes. gRPC takes the connection for none of TCP then, and would not
// limit for how long what it sends may stay unacknowledged.
func dialWire(ctx context.Context, addr string) (net.Conn, error) {
	c, err := dialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	callwire.NoticeDeadPeer(c)
	return rawtcp.Wrap(c), nil
}

// dialTCP connects with TCP keepalives, so that the kernel notices a dead peer on an idle
// connection.
func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: time.Second, Interval: 500 * time.Millisecond, Count: 3,
	}}
	return dialer.DialContext(ctx, "tcp", addr)
}
