package serve

import (
	"context"
	"net"

	"google.golang.org/grpc/peer"
)

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
