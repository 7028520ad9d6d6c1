package serve

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// readsListener notes the largest buffer that one of its connections is read into.
type readsListener struct {
	net.Listener
	largest atomic.Int64
}

func (l *readsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return readsConn{c, &l.largest}, err
}

type readsConn struct {
	net.Conn
	largest *atomic.Int64
}

func (c readsConn) Read(b []byte) (int, error) {
	c.largest.Store(max(c.largest.Load(), int64(len(b))))
	return c.Conn.Read(b)
}

func TestAConnectionOfTheWireHoldsASmallBuffer(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &readsListener{Listener: tcp}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Wire(ctx, l, NewWire(prometheus.NewRegistry(), nil)) }()
	client, err := grpc.NewClient(tcp.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Invoke(t.Context(), "/none/None", nil, nil); err == nil {
		t.Error("there is such a method")
	}
	_ = client.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if got := l.largest.Load(); got == 0 || got > readBuffer {
		t.Errorf("a connection is read into %d bytes", got)
	}
}
