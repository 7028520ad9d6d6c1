package wire

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// network connects programs in memory. Each side of a connection knows the other by the
// name of its role.
type network struct {
	addrs map[string]string // by role

	mu      sync.Mutex
	servers map[string]*listener // by address
}

// newNetwork reserves an address for each role that serves. It is to be called outside of
// a bubble: nobody there may wait for a real connection.
func newNetwork(t *testing.T) *network {
	n := &network{addrs: make(map[string]string), servers: make(map[string]*listener)}
	for _, role := range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n.addrs[role] = l.Addr().String()
		var accepting sync.WaitGroup
		accepting.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		})
		t.Cleanup(func() {
			_ = l.Close()
			accepting.Wait()
		})
	}
	return n
}

// listen serves a role's address until the listener is closed.
func (n *network) listen(role string) *listener {
	l := &listener{Listener: bufconn.Listen(1 << 20), names: make(chan string, 64)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[n.addrs[role]] = l
	return l
}

var errNobodyServes = errors.New("nobody serves that address")

func (n *network) dial(ctx context.Context, who, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.servers[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, errNobodyServes
	}
	return l.dial(ctx, who)
}

// listener tells its connections who is at their other end.
type listener struct {
	*bufconn.Listener
	dialing sync.Mutex
	names   chan string
}

func (l *listener) dial(ctx context.Context, who string) (net.Conn, error) {
	l.dialing.Lock()
	defer l.dialing.Unlock()
	l.names <- who
	conn, err := l.DialContext(ctx)
	if err != nil {
		<-l.names
	}
	return conn, err
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return namedConn{conn, roleAddr(<-l.names)}, nil
}

type namedConn struct {
	net.Conn
	from roleAddr
}

func (c namedConn) RemoteAddr() net.Addr { return c.from }

// roleAddr is a role as an address.
type roleAddr string

func (roleAddr) Network() string  { return "memory" }
func (a roleAddr) String() string { return string(a) }

// dialAs connects a role without credentials, which frames do not need.
func (n *network) dialAs(role string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) { return n.dial(ctx, role, addr) }
}

// as are the credentials by which a role connects: instead of encrypting a connection, they
// replace it by one in memory.
func (n *network) as(role string) credentials.TransportCredentials {
	return inMemory{insecure.NewCredentials(), n, role}
}

type inMemory struct {
	credentials.TransportCredentials
	network *network
	role    string
}

func (c inMemory) ClientHandshake(ctx context.Context, authority string, dialled net.Conn) (net.Conn, credentials.AuthInfo, error) {
	_ = dialled.Close()
	conn, err := c.network.dial(ctx, c.role, authority)
	if err != nil {
		return nil, nil, err
	}
	return c.TransportCredentials.ClientHandshake(ctx, authority, conn)
}

func (c inMemory) Clone() credentials.TransportCredentials { return c }
