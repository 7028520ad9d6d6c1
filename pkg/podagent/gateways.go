package podagent

import (
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// maxGateways bounds the connections that an agent keeps. Tickets of more
// gateways close the others' connections first.
const maxGateways = 64

// Dial makes a connection to a scheduler or gateway as an agent needs it: it
// connects when it is first used, notices a dead peer within seconds, and keeps
// little memory.
func Dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithReadBufferSize(4<<10),
		grpc.WithWriteBufferSize(4<<10),
		grpc.WithDisableServiceConfig(),
	)
}

// gatewayPool are the connections to the gateways that an agent has claimed at.
type gatewayPool struct {
	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn
	closed bool
}

func newGatewayPool() *gatewayPool { return &gatewayPool{conns: make(map[string]*grpc.ClientConn)} }

// to returns a connection to a gateway.
func (p *gatewayPool) to(addr string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("podagent: closed")
	}
	if conn, known := p.conns[addr]; known {
		return conn, nil
	}
	if len(p.conns) >= maxGateways {
		p.closeAll()
	}
	conn, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	p.conns[addr] = conn
	return conn, nil
}

// closeIdle closes the connections. It must be called only while no call runs.
func (p *gatewayPool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

func (p *gatewayPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.closeAll()
}

func (p *gatewayPool) closeAll() {
	for addr, conn := range p.conns {
		_ = conn.Close()
		delete(p.conns, addr)
	}
}
