package nodeagent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kerneltimer"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// The agents of BenchmarkCall are a process of their own, so that the node agent alone is measured.
const (
	agentsVariable = "NODEAGENT_BENCHMARK" // the node agent's address, and the number of calls
	caVariable     = "NODEAGENT_BENCHMARK_CA"
	callAgents     = 100
	callName       = "node.windlass"
)

// readGroup has a real file of the kernel to read, as a control group has, and no bands.
type readGroup struct {
	file   *cgroups.Readable
	buffer [64]byte
}

func (g *readGroup) Usage() (time.Duration, error) {
	_, err := g.file.ReadAt(g.buffer[:], 0)
	return 0, err
}

func (g *readGroup) SetLow(bool) error { return nil }
func (g *readGroup) Close() error      { return g.file.Close() }

// readInstances knows everybody.
type readInstances struct{}

func (readInstances) Identify(_ context.Context, hello Hello, _ net.Addr) (Instance, error) {
	file, err := cgroups.OpenReadable("/proc/loadavg")
	return Instance{
		Namespace: hello.Namespace, Function: hello.Function, Name: hello.Name, Key: hello.Name, Group: &readGroup{file: file}, MustAsk: true,
	}, err
}

// BenchmarkCall is what a call of 5 ms costs a node agent whose node is busy: its ask, its grant and its end, over TLS, and the
// looks at the node meanwhile. Between two calls of its hundred agents the node agent sleeps.
func BenchmarkCall(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ca := testca.New(b)
	agents := startAgents(b, serveSecurely(b, ca), ca)
	b.ReportAllocs()
	b.ResetTimer()
	before := usageOf(b)
	agents.makeCalls(b)
	after := usageOf(b)
	b.StopTimer()
	b.ReportMetric(0, "ns/op") // mostly sleep
	b.ReportMetric(float64(timeOf(after)-timeOf(before))/float64(time.Microsecond)/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(after.Nvcsw-before.Nvcsw)/float64(b.N), "switches/op")
}

// serveSecurely serves the node agent of a busy node as a cluster runs it, and returns its address.
func serveSecurely(b *testing.B, ca *testca.CA) string {
	creds, err := mtls.Load(ca.Folder(b, callName), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	load, err := OpenLoadAvg("/proc/loadavg")
	if err != nil {
		b.Skip(err)
	}
	agent, err := New(DefaultConfig(1), Deps{
		Instances: readInstances{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, NewTimer: kerneltimer.NewOrGo,
		Runnable: func() (int, error) {
			n, err := load.Runnable()
			return n + 9, err
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	server := serve.NewWire(prometheus.NewRegistry(), creds.ServerCredentials())
	nodewire.RegisterNodeServer(server, agent)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = serve.Wire(ctx, l, server) })
	serving.Go(func() { _ = agent.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		serving.Wait()
		_ = load.Close()
	})
	return l.Addr().String()
}

// agentsProcess is the process of the agents.
type agentsProcess struct {
	cmd   *exec.Cmd
	begin io.Closer
	said  io.Reader
}

// startAgents starts the agents, and returns once all have to ask.
func startAgents(b *testing.B, addr string, ca *testca.CA) agentsProcess {
	p := agentsProcess{cmd: exec.Command(os.Args[0], "-test.run=^TestAgentsOfBenchmarkCall$")}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", agentsVariable, addr, b.N), caVariable+"="+string(ca.PEM()))
	p.cmd.Stderr = os.Stderr
	begin, err := p.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	said, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.begin, p.said = begin, said
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p.listen(b)
	return p
}

// makeCalls lets the agents make their calls, and returns when they have.
func (p agentsProcess) makeCalls(b *testing.B) {
	_ = p.begin.Close()
	p.listen(b)
	b.Cleanup(func() { _ = p.cmd.Wait() })
}

// listen waits for a sign of the agents.
func (p agentsProcess) listen(b *testing.B) {
	if _, err := io.ReadFull(p.said, make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
}

// TestAgentsOfBenchmarkCall is the agents of BenchmarkCall.
func TestAgentsOfBenchmarkCall(t *testing.T) {
	var addr string
	var calls int
	if _, err := fmt.Sscan(os.Getenv(agentsVariable), &addr, &calls); err != nil {
		t.Skip("BenchmarkCall runs this in a process of its own, as its agents")
	}
	creds, err := mtls.AgentCredentials([]byte(os.Getenv(caVariable)), callName)
	if err != nil {
		t.Fatal(err)
	}
	var streams []nodewire.Node_ComputeClient
	for n := range callAgents {
		streams = append(streams, openAsAgents(t, addr, creds, n))
	}
	_, _ = fmt.Fprint(os.Stdout, "+")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is closed
	random := rand.New(rand.NewPCG(1, 2))
	for n := range calls {
		stream := streams[random.IntN(len(streams))]
		if err := stream.Send(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: uint64(n)}}}); err != nil {
			t.Fatal(err)
		}
		for receive(t, stream).GetGrant().GetAsk() != uint64(n) {
		}
		<-time.After(5 * time.Millisecond)
		if err := stream.Send(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ended{Ended: &nodewire.Ended{}}}); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond)
	}
	_, _ = fmt.Fprint(os.Stdout, "+")
}

// openAsAgents opens a stream on a connection of its own, with windows of a fixed size, and waits until calls have to ask.
func openAsAgents(t *testing.T, addr string, creds credentials.TransportCredentials, n int) nodewire.Node_ComputeClient {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds), grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := nodewire.NewNodeClient(conn).Compute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint("pod-", n)
	if err := stream.Send(helloOf(&nodewire.Hello{Namespace: fmt.Sprint("team-", n%5), Function: fmt.Sprint("f", n%20), Instance: name})); err != nil {
		t.Fatal(err)
	}
	for !receive(t, stream).GetMode().GetAsk() {
	}
	return stream
}

// usageOf is what this process has used.
func usageOf(b *testing.B) (usage syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage
}

func timeOf(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
