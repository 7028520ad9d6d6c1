package serve

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"
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

// What a client may send before anybody reads it counts against no budget.
func TestAnHTTP2ClientMayFillSmallBuffers(t *testing.T) {
	addr, _ := calls(t, func(http.ResponseWriter, *http.Request) {})
	conn := dial(t, addr)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	_ = f.WritePing(false, [8]byte{})
	stream, window, frame := uint32(65535), uint32(65535), uint32(0)
	for answered := false; !answered; {
		got, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch got := got.(type) {
		case *http2.SettingsFrame:
			if v, ok := got.Value(http2.SettingInitialWindowSize); ok {
				stream = v
			}
			if v, ok := got.Value(http2.SettingMaxFrameSize); ok {
				frame = v
			}
		case *http2.WindowUpdateFrame:
			window += got.Increment
		case *http2.PingFrame:
			answered = true
		}
	}
	if stream > 64<<10 || window > 1<<20 || frame > 16<<10 {
		t.Errorf("a stream may send %d bytes, a connection %d, in frames of %d", stream, window, frame)
	}
}

// discarded takes whatever is written.
type discarded struct{ net.Conn }

func (discarded) Write(b []byte) (int, error)      { return len(b), nil }
func (discarded) SetWriteDeadline(time.Time) error { return nil }

func TestTheBufferOfALargeFrameIsNotKept(t *testing.T) {
	for range 10 {
		w, s := frameWriter{to: discarded{}, window: 1 << 20, initial: 1 << 20, maxFrame: 64 << 10}, &agentStream{id: 1}
		w.letSend(s)
		if n, err := w.part(s, make([]byte, 64<<10)); n != 64<<10 || err != nil {
			t.Fatal(n, err)
		}
		if kept := cap(*writeBuffers.Get().(*[]byte)); kept > keptWriteBuffer {
			t.Errorf("%d bytes are kept", kept)
		}
	}
}
