package podagent

import (
	"io"
	"sync"

	"google.golang.org/grpc"
)

// maxGateways is how many connections an agent keeps. Before it opens another one, it closes
// those that are unused.
const maxGateways = 64

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

// acquire returns a connection to a gateway, which stays open until giveBack.
func (p *gatewayPool) acquire(addr string) (*gateway, error) {
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

// closeIdle closes unused connections.
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
