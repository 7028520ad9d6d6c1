package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

// BenchmarkFootprint prints what an agent costs: the program named by
// PODAGENT_BINARY beside a function, connected to a scheduler and a gateway that
// are all but free. hack/bench-agent.sh names it.
func BenchmarkFootprint(b *testing.B) {
	binary := os.Getenv("PODAGENT_BINARY")
	if binary == "" {
		b.Skip("PODAGENT_BINARY is not set: run hack/bench-agent.sh")
	}
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	report := func(name string, value float64, goal string) { fmt.Printf("%s=%.2f%s\n", name, value, goal) }
	report("agent_binary_mb", float64(info.Size())/1e6, " goal<=15")

	load, port := newLoad(b), busyFunction(b)
	p := startAgent(b, binary, load.addr, port)
	load.await()
	<-time.After(time.Second) // here and below: the span that is measured
	report("agent_rss_connected_mib", p.memory("VmRSS"), "")

	// A connection's buffers and the garbage of small calls.
	cpu, calls, begun := p.cpu(), load.done.Load(), time.Now()
	load.set(32, nil)
	<-time.After(5 * time.Second)
	calls = load.done.Load() - calls
	report("agent_rss_load_mib", p.memory("VmRSS"), "")
	report("agent_calls_per_second", float64(calls)/time.Since(begun).Seconds(), "")
	report("agent_cpu_us_per_call", float64((p.cpu()-cpu).Microseconds())/float64(calls), "")

	// Bodies of 8 MiB there and back.
	load.set(8, make([]byte, 8<<20))
	<-time.After(5 * time.Second)
	report("agent_rss_large_bodies_mib", p.memory("VmHWM"), "")
	load.set(0, nil)

	// Quiet, which the agent is after BackoffAfter.
	<-time.After(agentBackoff + 2*time.Second)
	cpu, begun = p.cpu(), time.Now()
	<-time.After(25 * time.Second)
	report("agent_rss_idle_mib", p.memory("VmRSS"), " goal<=15")
	report("agent_rss_idle_private_mib", p.memory("RssAnon"), "")
	report("agent_cpu_idle_percent", 100*float64(p.cpu()-cpu)/float64(time.Since(begun)), " goal<=0.5")
}

const agentBackoff = 2 * time.Second

// agentProcess is a running agent.
type agentProcess struct {
	b   *testing.B
	dir string // its folder in /proc
}

func startAgent(b *testing.B, binary, scheduler string, port int) *agentProcess {
	c := config()
	c.Scheduler, c.Port, c.Concurrency, c.BackoffAfter, c.IdleTimeout = scheduler, port, 32, agentBackoff, time.Hour
	cmd := exec.Command(binary)
	cmd.Env = c.Environ()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &agentProcess{b: b, dir: filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))}
}

// memory is a field of the process's status, in MiB.
func (p *agentProcess) memory(field string) float64 {
	text, err := os.ReadFile(filepath.Join(p.dir, "status"))
	if err != nil {
		p.b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), field+":")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		p.b.Fatalf("%s of the agent: %v", field, err)
	}
	return kib / 1024
}

// cpu is the time that the process has computed.
func (p *agentProcess) cpu() time.Duration {
	threads, _ := filepath.Glob(filepath.Join(p.dir, "task/*/schedstat"))
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		var ran time.Duration
		if err == nil {
			_, err = fmt.Sscan(string(text), &ran)
		}
		if err != nil {
			p.b.Fatal(err)
		}
		sum += ran
	}
	return sum
}

// busyFunction is a function that answers with what it was sent, or "hello".
func busyFunction(b *testing.B) (port int) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength <= 0 {
			_, _ = io.WriteString(w, "hello")
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	b.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// load is a scheduler that always has a ticket for up to some calls at a time,
// and the gateway that they are at.
type load struct {
	agentwire.UnimplementedInstancesServer
	agentwire.UnimplementedGatewayServer
	addr  string
	asked chan struct{} // closed at the first pull
	done  atomic.Int64

	mu      sync.Mutex
	most    int
	body    []byte
	credits int
	running int
	stream  grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]
}

func newLoad(b *testing.B) *load {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	l := &load{addr: listener.Addr().String(), asked: make(chan struct{})}
	server := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}))
	agentwire.RegisterInstancesServer(server, l)
	agentwire.RegisterGatewayServer(server, l)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	b.Cleanup(func() {
		server.Stop()
		<-served
	})
	return l
}

func (l *load) await() { <-l.asked }

// set says how many calls are to run at a time from now on, and with which body.
func (l *load) set(most int, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most, l.body = most, body
	l.match()
}

// match hands out tickets. The caller holds the lock.
func (l *load) match() {
	for ; l.credits > 0 && l.running < l.most; l.credits-- {
		l.running++
		ticket := &agentwire.Ticket{InvocationId: make([]byte, 16), Gateway: l.addr, Token: make([]byte, 16)}
		_ = l.stream.Send(&agentwire.PullReply{Kind: &agentwire.PullReply_Ticket{Ticket: ticket}})
	}
}

func (l *load) Pull(stream grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]) error {
	for {
		msg, err := stream.Recv()
		if err != nil {
			return nil
		}
		pull := msg.GetPull()
		if pull == nil {
			l.answer(stream, msg)
			continue
		}
		l.mu.Lock()
		if l.stream == nil {
			l.stream = stream
			close(l.asked)
		}
		l.credits += int(pull.GetCredits())
		l.running -= len(pull.GetDone())
		l.done.Add(int64(len(pull.GetDone())))
		l.match()
		l.mu.Unlock()
	}
}

// answer is what an agent must hear to know that its scheduler is there.
func (l *load) answer(stream grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply], msg *agentwire.PullRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if msg.GetHello() != nil {
		_ = stream.Send(&agentwire.PullReply{Kind: &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{Epoch: 1}}})
	}
	if msg.GetPing() != nil {
		_ = stream.Send(&agentwire.PullReply{Kind: &agentwire.PullReply_Pong{Pong: &agentwire.Pong{}}})
	}
}

func (l *load) Attempt(stream grpc.BidiStreamingServer[agentwire.AttemptRequest, agentwire.AttemptReply]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	l.mu.Lock()
	body := l.body
	l.mu.Unlock()
	granted := &agentwire.Granted{
		Attempt: 1, Method: "POST", RequestUri: "/", Host: "h", RemainingNs: int64(time.Minute),
		ContentLength: int64(len(body)), Whole: body == nil,
	}
	if err := stream.Send(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Granted{Granted: granted}}); err != nil {
		return err
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() { sendBody(stream, body) })
	for {
		msg, err := stream.Recv()
		if err != nil || msg.GetHead().GetWhole() || msg.GetEnd() != nil {
			return err
		}
	}
}

func sendBody(stream grpc.BidiStreamingServer[agentwire.AttemptRequest, agentwire.AttemptReply], body []byte) {
	if body == nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for from := bytes.NewReader(body); ; {
		n, err := from.Read(buffer)
		if err != nil {
			_ = stream.Send(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_BodyEnd{BodyEnd: &agentwire.BodyEnd{}}})
			return
		}
		if stream.Send(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Body{Body: buffer[:n]}}) != nil {
			return
		}
	}
}
