package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

type (
	pullServer = agentwire.Instances_PullServer
	pullClient = agentwire.Instances_PullClient
)

// pulling are a scheduler's services.
type pulling struct {
	agentwire.UnimplementedInstancesServer
	controlwire.UnimplementedSchedulerServer
	pull func(pullServer) error
}

func (p pulling) Pull(stream pullServer) error { return p.pull(stream) }

// answerPings answers each hello with a welcome of the same features, and each ping with a pong. As a
// scheduler does, it sends in another goroutine than it receives.
func answerPings(stream pullServer) error {
	replies, sent := make(chan *agentwire.PullReply, 64), make(chan struct{})
	defer func() { <-sent }()
	defer close(replies)
	go func() {
		defer close(sent)
		for reply := range replies {
			_ = stream.Send(reply) // the handler learns if the stream has ended
		}
	}()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply := &agentwire.PullReply{Kind: &agentwire.PullReply_Pong{Pong: &agentwire.Pong{}}}
		if hello := m.GetHello(); hello != nil {
			reply.Kind = &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{Features: hello.GetFeatures()}}
		}
		replies <- reply
	}
}

var ping = &agentwire.PullRequest{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{}}}

func helloOf(length int) *agentwire.PullRequest {
	return &agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{Features: []string{strings.Repeat("x", length)}}}}
}

// scheduler is a running server of pulls.
type scheduler struct {
	server *WireServer
	stop   func()
	done   chan error
}

func startScheduler(t testing.TB, l net.Listener, secure credentials.TransportCredentials, pull func(pullServer) error, options ...grpc.ServerOption) *scheduler {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &scheduler{server: NewWire(prometheus.NewPedanticRegistry(), secure, options...), stop: stop, done: make(chan error, 1)}
	agentwire.RegisterInstancesServer(s.server, pulling{pull: pull})
	controlwire.RegisterSchedulerServer(s.server, pulling{})
	go func() { s.done <- Wire(ctx, l, s.server) }()
	return s
}

// end stops the server and waits for it.
func (s *scheduler) end(t testing.TB) {
	t.Helper()
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	if len(s.server.agents.conns) != 0 || s.server.strangers.count != 0 {
		t.Errorf("%d connections and %d strangers are left", len(s.server.agents.conns), s.server.strangers.count)
	}
}

func (s *scheduler) refused(code codes.Code) float64 {
	return testutil.ToFloat64(s.server.guard.refused.WithLabelValues("Pull", code.String()))
}

// grpcAgent is a real client of a server of agents' streams, which does what the agents of a cluster do.
func grpcAgent(t *testing.T, pull func(pullServer) error) (*scheduler, *grpc.ClientConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := startScheduler(t, l, nil, pull)
	t.Cleanup(func() { s.end(t) })
	return s, dialPulls(t, l.Addr().String(), insecure.NewCredentials())
}

func dialPulls(t *testing.T, addr string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(creds), grpc.WithDisableServiceConfig(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(1<<20),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func openPull(t *testing.T, conn *grpc.ClientConn, options ...grpc.CallOption) pullClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	stream, err := agentwire.NewInstancesClient(conn).Pull(ctx, options...)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// asks sends messages, and expects as many replies.
func asks(t *testing.T, stream pullClient, messages ...*agentwire.PullRequest) {
	t.Helper()
	for _, m := range messages {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
		reply, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(reply.GetWelcome().GetFeatures()), len(m.GetHello().GetFeatures()); got != want || got > 0 && len(reply.GetWelcome().GetFeatures()[0]) != len(m.GetHello().GetFeatures()[0]) {
			t.Fatalf("the reply has %d features, want %d, or they have another length", got, want)
		}
	}
}

// ended waits for the end of a stream and returns its status.
func ended(t *testing.T, stream pullClient) *status.Status {
	t.Helper()
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return status.New(codes.OK, "")
		} else if err != nil {
			return status.Convert(err)
		}
	}
}

func TestAgentsOfGRPCPull(t *testing.T) {
	_, conn := grpcAgent(t, answerPings)
	for range 3 { // one stream after the other on one connection
		stream := openPull(t, conn)
		asks(t, stream, helloOf(10), ping, ping, helloOf(3<<20), ping, helloOf(300<<10))
		for range 2000 {
			asks(t, stream, ping)
		}
		_ = stream.CloseSend()
		if got := ended(t, stream); got.Code() != codes.OK {
			t.Error(got)
		}
	}
}

func TestAStreamEndsWithTheHandlersStatus(t *testing.T) {
	const text = "100 % of \"Größe\"\n\x7f is — too much: \xff"
	s, conn := grpcAgent(t, func(stream pullServer) error {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetPing() != nil {
			_ = stream.Send(&agentwire.PullReply{})
		}
		return status.Error(codes.NotFound, text)
	})
	for _, m := range []*agentwire.PullRequest{ping, helloOf(1)} { // with an answer, and without
		stream := openPull(t, conn)
		_ = stream.Send(m)
		if got := ended(t, stream); got.Code() != codes.NotFound || got.Message() != strings.ToValidUTF8(text, "\uFFFD") {
			t.Errorf("it ends with %v", got)
		}
	}
	if got := s.refused(codes.NotFound); got != 2 {
		t.Errorf("%v are counted", got)
	}
}

func TestAnyGoroutineEndsAStream(t *testing.T) {
	over := status.Error(codes.Aborted, "over")
	returned := make(chan error, 1)
	_, conn := grpcAgent(t, func(stream pullServer) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		transport := grpc.ServerTransportStreamFromContext(stream.Context()).(interface{ End(error) })
		go func() {
			transport.End(over)
			transport.End(errors.New("too late"))
		}()
		_, err := stream.Recv()
		<-stream.Context().Done()
		returned <- err
		return nil
	})
	for range 2 {
		stream := openPull(t, conn)
		_ = stream.Send(ping)
		if got := ended(t, stream); got.Code() != codes.Aborted || got.Message() != "over" {
			t.Errorf("it ends with %v", got)
		}
		if err := <-returned; !errors.Is(err, over) {
			t.Errorf("the handler receives %v", err)
		}
	}
}

func TestAClientThatCancelsMayOpenAnotherStream(t *testing.T) {
	received := make(chan error, 1)
	_, conn := grpcAgent(t, func(stream pullServer) error {
		if err := answerPings(stream); err != nil {
			received <- err
		}
		return nil
	})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := agentwire.NewInstancesClient(conn).Pull(ctx)
		if err != nil {
			t.Fatal(err)
		}
		asks(t, stream, ping, ping)
		cancel()
		if err := <-received; status.Code(err) != codes.Canceled {
			t.Errorf("the handler receives %v", err)
		}
	}
}

// A second stream waits in the client until the first has ended, and a foreign method is refused.
func TestAConnectionHasOneStreamOfPulls(t *testing.T) {
	_, conn := grpcAgent(t, answerPings)
	first := openPull(t, conn)
	asks(t, first, ping)
	opened := make(chan pullClient)
	go func() {
		second, err := agentwire.NewInstancesClient(conn).Pull(t.Context())
		if err != nil {
			t.Error(err)
		}
		opened <- second
	}()
	asks(t, first, ping, ping)
	_ = first.CloseSend()
	if got := ended(t, first); got.Code() != codes.OK {
		t.Error(got)
	}
	second := <-opened
	asks(t, second, ping)
	_ = second.CloseSend()
	_ = ended(t, second)
	_, err := controlwire.NewSchedulerClient(conn).Slots(t.Context(), &controlwire.SlotsRequest{})
	if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "Slots") {
		t.Errorf("another method ends with %v", err)
	}
}

func TestCompressedMessagesAreRefused(t *testing.T) {
	_, conn := grpcAgent(t, answerPings)
	stream := openPull(t, conn, grpc.UseCompressor(gzip.Name))
	_ = stream.Send(helloOf(1000))
	if got := ended(t, stream); got.Code() != codes.Unimplemented {
		t.Errorf("it ends with %v", got)
	}
}

func TestWhatIsNoMessageEndsAStream(t *testing.T) {
	s, conn := grpcAgent(t, answerPings)
	stream := openPull(t, conn, grpc.ForceCodecV2(nonsense{}))
	_ = stream.Send(ping)
	if got := ended(t, stream); got.Code() != codes.Internal {
		t.Errorf("it ends with %v", got)
	}
	if got := testutil.CollectAndCount(s.server.guard.refused); got != 0 {
		t.Errorf("%d refusals are counted", got)
	}
}

// nonsense encodes messages as what is none.
type nonsense struct{}

func (nonsense) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer("\xff")}, nil
}
func (nonsense) Unmarshal(mem.BufferSlice, any) error { return nil }
func (nonsense) Name() string                         { return "proto" }

func TestMessagesHaveBounds(t *testing.T) {
	for name, c := range map[string]struct {
		before []*agentwire.PullRequest
		long   int
		want   string
	}{
		"the first": {nil, wire.MaxFirst, "the first message is longer than 16384 bytes"},
		"another":   {[]*agentwire.PullRequest{ping}, wire.MaxMessage, "the message is longer than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s, conn := grpcAgent(t, answerPings)
			stream := openPull(t, conn)
			asks(t, stream, c.before...)
			_ = stream.Send(helloOf(c.long))
			if got := ended(t, stream); got.Code() != codes.ResourceExhausted || got.Message() != c.want {
				t.Errorf("it ends with %v", got)
			}
			if got := s.refused(codes.ResourceExhausted); got != 1 {
				t.Errorf("%v are counted", got)
			}
			asks(t, openPull(t, conn), ping)
		})
	}
}

// Whatever begins with another method is gRPC's, on the same port, with its certificate.
func TestOtherMethodsAreServedByGRPC(t *testing.T) {
	const domain = mtls.Domain("windlass.test")
	ca := testca.New(t)
	role := func(name string) *mtls.Credentials {
		c, err := mtls.Load(ca.Folder(t, name), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	agent, err := mtls.AgentCredentials(ca.PEM(), domain.Scheduler())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := startScheduler(t, l, role(domain.Scheduler()).ServerCredentials(), answerPings, mtls.RequirePeer(mtls.SchedulerMethods(domain))...)
	t.Cleanup(func() { s.end(t) })
	for name, c := range map[string]struct {
		creds credentials.TransportCredentials
		want  codes.Code
	}{
		"a gateway":    {role(domain.Gateway()).ClientCredentials(domain.Scheduler()), codes.Unimplemented}, // which is what this service says
		"a controller": {role(domain.Controller()).ClientCredentials(domain.Scheduler()), codes.PermissionDenied},
		"an agent":     {agent, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialPulls(t, l.Addr().String(), c.creds)
			for range 500 { // more than strangers may say for one stream
				if _, err := controlwire.NewSchedulerClient(conn).Slots(t.Context(), &controlwire.SlotsRequest{}); status.Code(err) != c.want {
					t.Fatalf("it is answered %v, want %v", err, c.want)
				}
			}
			stream := openPull(t, dialPulls(t, l.Addr().String(), c.creds))
			asks(t, stream, ping, helloOf(100<<10))
		})
	}
}

func TestThePeerOfAStreamHasItsCertificate(t *testing.T) {
	const domain = mtls.Domain("windlass.test")
	ca := testca.New(t)
	load := func(name string) *mtls.Credentials {
		c, err := mtls.Load(ca.Folder(t, name), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	names := make(chan []string, 1)
	s := startScheduler(t, l, load(domain.Scheduler()).ServerCredentials(), func(stream pullServer) error {
		seen, _ := mtls.PeerName(stream.Context())
		names <- seen
		return nil
	})
	defer s.end(t)
	_ = openPull(t, dialPulls(t, l.Addr().String(), load(domain.Gateway()).ClientCredentials(domain.Scheduler()))).Send(ping)
	if got := <-names; len(got) != 1 || got[0] != domain.Gateway() {
		t.Errorf("the peer is %q", got)
	}
}
