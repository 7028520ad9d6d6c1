package serve

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/peer"
)

// maxWrong is how many wrong tokens in a row end a connection. An honest agent
// has one now and then, when a call was given back while its old ticket waited.
const maxWrong = 32

// peers is a listener whose connections can be found again from within a call.
type peers struct{ net.Listener }

func (p peers) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &peerConn{Conn: conn}, nil
}

// peerConn is one client's connection.
type peerConn struct {
	net.Conn
	wrong atomic.Int32
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

func guessedRight(ctx context.Context) {
	if c := connOf(ctx); c != nil {
		c.wrong.Store(0)
	}
}

func guessedWrong(ctx context.Context) {
	if c := connOf(ctx); c != nil && c.wrong.Add(1) >= maxWrong {
		_ = c.Close()
	}
}

// hangUp ends the connection of a call.
func hangUp(ctx context.Context) {
	if c := connOf(ctx); c != nil {
		_ = c.Close()
	}
}
