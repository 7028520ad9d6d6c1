package serve

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/peer"
)

// peers is a listener whose connections can be found again from within a call.
type peers struct {
	net.Listener
	strangers *strangerLimiter
}

// Accept implements net.Listener. A connection that is one too many is closed.
func (p peers) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := newPeerConn(conn, p.strangers, time.Now())
	if surplus := p.strangers.admit(c); surplus != nil {
		_ = surplus.Close()
	}
	return c, nil
}

// RemoteAddr implements net.Conn. gRPC hands it to every call as its peer.
func (c *peerConn) RemoteAddr() net.Addr { return peerAddr{c.Conn.RemoteAddr(), c} }

type peerAddr struct {
	net.Addr
	conn *peerConn
}

func connOf(ctx context.Context) *peerConn {
	if p, ok := peer.FromContext(ctx); ok {
		if addr, ok := p.Addr.(peerAddr); ok {
			return addr.conn
		}
	}
	return nil
}
