package podagent

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// instantly is a function that answers at once.
type instantly struct{ header invocation.Fields }

func (instantly) WaitReady(context.Context) error { return nil }

func (f instantly) Invoke(_ context.Context, _ *adapter.Call, w adapter.ResultWriter) error {
	if err := w.WriteHead(adapter.Head{Status: 200, ContentLength: 13, Header: f.header}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "hello, world\n")
	return err
}

// BenchmarkCallByLoan is what a call by a loan costs in the agent and on a TCP connection, without
// the function. The other end of the connection is part of it.
func BenchmarkCallByLoan(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	scheduler := &fakeScheduler{streams: make(chan *pulls, 1)}
	c := config()
	c.Concurrency, c.BackoffAfter = 1, time.Hour
	agent := New(c, Deps{
		Adapter: instantly{invocation.Fields{{Name: "Content-Type", Value: "text/plain"}, {Name: "Date", Value: "now"}}}, Log: slog.New(slog.DiscardHandler),
	})
	agent.dialScheduler = func(string) (conn, error) { return newMemoryConn(scheduler), nil }
	agent.dialGateway = func(ctx context.Context, _ string) (net.Conn, error) {
		return Dialer{}.Gateway(ctx, l.Addr().String())
	}
	ctx, stop := context.WithCancel(b.Context())
	ran := make(chan error, 1)
	go func() { ran <- agent.Run(ctx) }()
	p := <-scheduler.streams
	for range 2 { // hello and pull
		<-p.said
	}
	_ = p.stream.Send(&agentwire.PullReply{Kind: &agentwire.PullReply_Ticket{Ticket: &agentwire.Ticket{
		InvocationId: idOf("a"), Token: idOf("token"), Lent: true,
	}}})
	gateway := benchGateway{b, l}.accept()
	defer gateway.Close()
	call := callwire.Call{
		Attempt: 1, Method: "GET", RequestURI: "/f", Host: "f.example", Remaining: time.Minute, Whole: true,
		Header: []callwire.Field{{Name: "User-Agent", Value: "bench"}, {Name: "Accept", Value: "*/*"}, {Name: "X-Request-Id", Value: "1"}},
	}
	copy(call.Invocation[:], "a")
	number := uint32(1) // of the claim
	b.ReportAllocs()
	for b.Loop() {
		gateway.Commit(call.Append(gateway.Begin(), number))
		f, err := gateway.Read()
		if err != nil || !f.Has(callwire.FlagKeeps) {
			b.Fatalf("%v, %v", f, err)
		}
		number += 2 - number%2
	}
	stop()
	gateway.Close()
	if err := <-ran; err != nil {
		b.Error(err)
	}
}

type benchGateway struct {
	b *testing.B
	l net.Listener
}

// accept takes the agent's connection, and its claim.
func (g benchGateway) accept() *callwire.Conn {
	c, err := g.l.Accept()
	if err != nil {
		g.b.Fatal(err)
	}
	conn := callwire.NewConn(c, nil)
	welcome := callwire.Welcome{Protocol: 1}
	for _, kind := range []callwire.Kind{callwire.KindHello, callwire.KindClaim} {
		f, err := conn.Read()
		if err != nil || f.Kind != kind {
			g.b.Fatalf("%v, %v", f, err)
		}
		if kind == callwire.KindHello {
			conn.Commit(welcome.Append(conn.Begin()))
		}
	}
	return conn
}
