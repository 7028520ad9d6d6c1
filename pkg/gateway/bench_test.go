package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

var (
	benchRequest = []byte("GET /function/hello/path HTTP/1.1\r\nHost: gateway.example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
	benchBody    = []byte("hello, world\n")
)

// BenchmarkCallByLoan is what a warm call costs in the gateway, with its HTTP server and both
// connections. The client and the instance allocate nothing for a call.
func BenchmarkCallByLoan(b *testing.B) {
	scheduler := newFakeScheduler(b)
	functions := catalog.New()
	fn := newFunction("default", "hello", time.Minute)
	fn.Annotations = map[string]string{v1alpha1.AnnotationRevision: "1"}
	functions.Put(rollout.Alone(fn))
	config := gateway.DefaultConfig()
	config.ClaimAddr = "127.0.0.1:1"
	g, err := gateway.New(config, gateway.Deps{
		Catalog: functions, Router: &router{changed: make(chan struct{}, 1), addr: scheduler.addr},
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	// The limits are those of a program: each deadline is set for each call.
	calls := listen(b, "127.0.0.1:0")
	server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute}
	go func() { _ = server.Serve(rawListener{calls}) }()
	client := benchClient{b, dialBench(b, calls)}

	client.send()
	go answerAtOnce(b, g, scheduler)
	buffer := make([]byte, 4<<10)
	client.receive(buffer)
	b.ReportAllocs()
	for b.Loop() {
		client.send()
		client.receive(buffer)
	}
	b.StopTimer()
	_ = server.Close()
	stop()
	if err := receive(b, ended, "the end of Run"); err != nil {
		b.Error(err)
	}
}

// rawListener accepts connections as the program's listeners do.
type rawListener struct{ net.Listener }

func (l rawListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return rawtcp.Wrap(c), nil
}

func dialBench(b *testing.B, l net.Listener) net.Conn {
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

type benchClient struct {
	b    *testing.B
	conn net.Conn
}

func (c benchClient) send() {
	if _, err := c.conn.Write(benchRequest); err != nil {
		c.b.Fatal(err)
	}
}

// receive reads one answer.
func (c benchClient) receive(buffer []byte) {
	for n := 0; !bytes.HasSuffix(buffer[:n], benchBody); {
		more, err := c.conn.Read(buffer[n:])
		if err != nil {
			c.b.Fatalf("%v after %q", err, buffer[:n])
		}
		n += more
	}
}

// answerAtOnce is an agent that claims a ticket and answers all calls.
func answerAtOnce(b *testing.B, g *gateway.Gateway, scheduler *fakeScheduler) {
	l := listen(b, "127.0.0.1:0")
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		if c, err := (rawListener{l}).Accept(); err == nil {
			_ = g.ServeAgent(callwire.NewConn(c, nil), new(fakeGuard))
		}
	}()
	conn := callwire.NewConn(dialBench(b, l), nil)
	hello := callwire.Hello{CID: firstCID, ProtocolMin: 1, ProtocolMax: 1}
	conn.Commit(hello.Append(conn.Begin()))
	ticket := scheduler.ticket()
	var claim callwire.Claim
	copy(claim.Invocation[:], ticket.GetInvocationId())
	copy(claim.Token[:], ticket.GetToken())
	conn.Commit(callwire.AppendClaim(conn.Begin(), 1, claim))
	head := callwire.Head{
		Status: 200, ContentLength: int64(len(benchBody)), Whole: true, Keeps: true, Body: benchBody, BegunAfter: 1000, Exec: 5000,
		Header: []callwire.Field{{Name: "Content-Type", Value: "text/plain"}, {Name: "Date", Value: "now"}},
	}
	for {
		f, err := conn.Read()
		if err != nil {
			return // the benchmark has ended
		}
		if f.Kind == callwire.KindCall {
			conn.Commit(head.Append(conn.Begin(), f.Call))
		}
	}
}
