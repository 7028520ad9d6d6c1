package podagent

import (
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// maxGateways bounds the connections that an agent keeps unused: before it opens
// one more, it closes those.
const maxGateways = 64

// Windows of flow control, in bytes: what a peer may send that was not read yet.
// gRPC would let them grow to 16 MiB, and measure with pings how far, which costs
// a wake-up per call.
const (
	streamWindow = 64 << 10
	connWindow   = 1 << 20
)

// Dialer makes connections to schedulers and gateways. Its zero value does not
// encrypt them.
type Dialer struct {
	// Schedulers and Gateways say who they must prove to be.
	Schedulers, Gateways credentials.TransportCredentials
}

// Scheduler makes a connection to a scheduler.
func (d Dialer) Scheduler(addr string) (*grpc.ClientConn, error) { return dial(addr, d.Schedulers) }

// Gateway makes a connection to a gateway.
func (d Dialer) Gateway(addr string) (*grpc.ClientConn, error) { return dial(addr, d.Gateways) }

// dial makes a connection as an agent needs it: it connects when it is first
// used, notices a dead peer within seconds, is there again soon after its peer
// is, and keeps little memory.
func dial(addr string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: shortestPause, Multiplier: 2, Jitter: 0.2, MaxDelay: hopefulPause},
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

// gatewayPool are the connections to the gateways that an agent has claimed at.
type gatewayPool struct {
	dial     func(addr string) (conn, error)
	mu       sync.Mutex
	gateways map[string]*gateway
}

// gateway is a connection and the number of its users.
type gateway struct {
	conn  conn
	users int
}

type conn interface {
	grpc.ClientConnInterface
	io.Closer
}

func newGatewayPool(d Dialer) *gatewayPool {
	return &gatewayPool{
		dial:     func(addr string) (conn, error) { return d.Gateway(addr) },
		gateways: make(map[string]*gateway),
	}
}

// take takes a connection to a gateway, which stays open until giveBack.
func (p *gatewayPool) take(addr string) (*gateway, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, known := p.gateways[addr]
	if !known {
		if len(p.gateways) >= maxGateways {
			p.closeUnused()
		}
		conn, err := p.dial(addr)
		if err != nil {
			return nil, err
		}
		g = &gateway{conn: conn}
		p.gateways[addr] = g
	}
	g.users++
	return g, nil
}

func (p *gatewayPool) giveBack(g *gateway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.users--
}

// closeIdle closes the connections that nobody uses.
func (p *gatewayPool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeUnused()
}

func (p *gatewayPool) closeUnused() {
	for addr, g := range p.gateways {
		if g.users == 0 {
			_ = g.conn.Close()
			delete(p.gateways, addr)
		}
	}
}
