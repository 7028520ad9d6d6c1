package nodeagent

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/wire"
	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// serveReal serves a node agent on loopback, as programs do, and returns a client.
func serveReal(t testing.TB, m *machine) nodewire.NodeClient {
	t.Helper()
	config := DefaultConfig(2)
	config.ExemptBelow = 0
	agent, err := New(config, Deps{Instances: m, Runnable: m.load, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	server := serve.NewWire(prometheus.NewRegistry(), nil)
	nodewire.RegisterNodeServer(server, agent)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- serve.Wire(ctx, l, server) }()
	go func() { ended <- agent.Run(ctx) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		for range 2 {
			<-ended
		}
	})
	return nodewire.NewNodeClient(conn)
}

// open opens a stream and waits until the node agent says whether to ask.
func open(t testing.TB, client nodewire.NodeClient, name string) nodewire.Node_ComputeClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	stream, err := client.Compute(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(helloOf(&nodewire.Hello{Token: name, Namespace: "ns", Function: "f", Instance: name})); err != nil {
		t.Fatal(err)
	}
	return stream
}

func receive(t testing.TB, stream nodewire.Node_ComputeClient) *nodewire.ComputeReply {
	t.Helper()
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheWireByGRPC(t *testing.T) {
	m := &machine{t: t, groups: map[string]*fakeGroup{}, runnable: 9}
	client := serveReal(t, m)
	stream := open(t, client, "a")
	if w := receive(t, stream).GetWelcome(); w.GetProtocol() != 1 || w.GetStillEveryNs() <= 0 {
		t.Fatalf("welcome: %v", w)
	}
	if !receive(t, stream).GetMode().GetAsk() {
		t.Fatal("a busy machine lets nobody ask")
	}
	if err := stream.Send(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: 5}}}); err != nil {
		t.Fatal(err)
	}
	if g := receive(t, stream).GetGrant(); g.GetAsk() != 5 {
		t.Fatalf("grant: %v", g)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := stream.Recv(); err != nil {
			break
		}
	}
}

// What an ask and its grant cost both sides together, and how long they take.
func BenchmarkAsk(b *testing.B) {
	m := &machine{groups: map[string]*fakeGroup{}, runnable: 9}
	stream := open(b, serveReal(b, m), "a")
	for !receive(b, stream).GetMode().GetAsk() {
	}
	ask := &nodewire.Ask{}
	msg := &nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: ask}}
	for b.Loop() {
		ask.Ask++
		if err := stream.Send(msg); err != nil {
			b.Fatal(err)
		}
		for receive(b, stream).GetGrant().GetAsk() != ask.GetAsk() {
		}
	}
}

// What a look at the machine costs, without the wake-up: on a calm one, and on a busy one whose
// cores all have calls.
func BenchmarkLook(b *testing.B) {
	load, err := OpenLoadAvg("/proc/loadavg")
	if err != nil {
		b.Skip(err)
	}
	defer load.Close()
	for _, busy := range []bool{false, true} {
		b.Run(map[bool]string{false: "calm", true: "busy"}[busy], func(b *testing.B) {
			m := &machine{groups: map[string]*fakeGroup{}}
			now := time.Now()
			agent, err := New(DefaultConfig(2), Deps{
				Instances: m, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
				Runnable: func() (int, error) {
					n, err := load.Runnable()
					return n + map[bool]int{true: 9}[busy], err
				},
			})
			if err != nil {
				b.Fatal(err)
			}
			var sessions []*session
			agent.mu.Lock()
			for _, name := range []string{"a", "b", "c", "d"} {
				s := newSession(Instance{Namespace: "ns", Function: name, Name: name, Key: name, Group: &fakeGroup{since: now, computes: true}})
				s.replies.SendBy(discard)
				if err := agent.joinLocked(s); err != nil {
					b.Fatal(err)
				}
				sessions = append(sessions, s)
			}
			for range 10 {
				now = now.Add(10 * time.Millisecond)
				agent.look(agent.now())
			}
			agent.mu.Unlock()
			for _, s := range sessions {
				agent.onMessage(s, &nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: 1}}})
			}
			agent.mu.Lock()
			defer agent.mu.Unlock()
			for b.Loop() {
				agent.look(agent.now())
				_, pause := agent.state.pause(agent.config)
				now = now.Add(pause)
			}
		})
	}
}

// What a node agent takes of a core while it runs, wake-ups included: without instances, on a calm
// node, and on a busy one where two calls hold tickets and two wait. An operation is a millisecond.
func BenchmarkRun(b *testing.B) {
	load, err := OpenLoadAvg("/proc/loadavg")
	if err != nil {
		b.Skip(err)
	}
	defer load.Close()
	for _, tt := range []struct {
		name      string
		instances int
		busy      int // threads more than there are
	}{{"alone", 0, 0}, {"calm", 4, -1000}, {"busy", 4, 1000}} {
		b.Run(tt.name, func(b *testing.B) {
			config := DefaultConfig(2)
			config.Calls.Slice, config.Calls.BlockedAfter = callorder.Slice{Rule: callorder.SliceOff}, 0
			agent, err := New(config, Deps{Log: slog.New(slog.DiscardHandler), Now: time.Now, Runnable: func() (int, error) {
				n, err := load.Runnable()
				return n + tt.busy, err
			}})
			if err != nil {
				b.Fatal(err)
			}
			for n := range tt.instances {
				s := newSession(Instance{Namespace: "ns", Function: "f", Name: string('a' + rune(n)), Key: string('a' + rune(n)), Group: &fakeGroup{computes: true, since: time.Now()}})
				s.replies.SendBy(discard)
				agent.mu.Lock()
				err := agent.joinLocked(s)
				agent.mu.Unlock()
				if err != nil {
					b.Fatal(err)
				}
				defer time.AfterFunc(50*time.Millisecond, func() {
					agent.onMessage(s, &nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: 1}}})
				}).Stop()
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- agent.Run(ctx) }()
			before, began := cpuTime(b), time.Now()
			<-time.After(time.Duration(b.N) * time.Millisecond)
			b.ReportMetric(100*float64(cpuTime(b)-before)/float64(time.Since(began)), "%core")
			cancel()
			<-ended
		})
	}
}

// discard is what an agent does that reads its replies.
func discard(*nodewire.ComputeReply) error { return nil }

// cpuTime is the processor time of this process.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestTenantsSayLittle(t *testing.T) {
	long := strings.Repeat("x", wire.MaxNodeMessage)
	hello := func() *nodewire.ComputeRequest {
		return helloOf(&nodewire.Hello{Token: "pod", Namespace: "ns", Function: "f", Instance: "pod"})
	}
	m := &machine{t: t, groups: map[string]*fakeGroup{}}
	client := serveReal(t, m)
	for name, c := range map[string]struct {
		says []*nodewire.ComputeRequest
		want string
	}{
		"a hello":         {[]*nodewire.ComputeRequest{helloOf(&nodewire.Hello{Token: long})}, "the first message is longer than 4096 bytes"},
		"another message": {[]*nodewire.ComputeRequest{hello(), helloOf(&nodewire.Hello{Token: long})}, "the message is longer than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := client.Compute(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, said := range c.says {
				if err := stream.Send(said); err != nil {
					t.Fatal(err)
				}
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if got := status.Convert(err); got.Code() != codes.ResourceExhausted || got.Message() != c.want {
				t.Errorf("the stream ends with %v", err)
			}
		})
	}
}
