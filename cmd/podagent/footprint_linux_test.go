package main

import (
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
	"github.com/windlass-dev/windlass/internal/callwire"
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

// load is a scheduler and a gateway that always have calls for up to some at a time. Only the
// first ones need tickets: their places stay with the gateway.
type load struct {
	agentwire.UnimplementedInstancesServer
	addr, gateway string
	asked         chan struct{} // closed at the first pull
	done          atomic.Int64

	mu      sync.Mutex
	most    int
	body    []byte
	credits int // the scheduler's
	lent    int // the gateway's
	running int
	last    uint32
	stream  grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]
	conn    *callwire.Conn
	out     map[uint32]*callwire.Outflow
}

func newLoad(b *testing.B) *load {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	l := &load{addr: listener.Addr().String(), asked: make(chan struct{}), out: make(map[uint32]*callwire.Outflow)}
	l.gateway = acceptAgents(b, l.serveAgent)
	server := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}))
	agentwire.RegisterInstancesServer(server, l)
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
	if l.conn != nil {
		l.conn.FlushLater()
	}
}

// match hands out calls and tickets. The caller holds the lock.
func (l *load) match() {
	for ; l.lent > 0 && l.running < l.most; l.lent-- {
		l.running++
		l.last += 2
		l.call(l.last, callwire.Claim{})
	}
	for ; l.credits > 0 && l.running < l.most; l.credits-- {
		l.running++
		ticket := &agentwire.Ticket{InvocationId: make([]byte, 16), Gateway: l.gateway, Token: make([]byte, 16), Lent: true}
		_ = l.stream.Send(&agentwire.PullReply{Kind: &agentwire.PullReply_Ticket{Ticket: ticket}})
	}
}

// call sends a call. The caller holds the lock.
func (l *load) call(number uint32, claim callwire.Claim) {
	call := callwire.Call{
		Invocation: claim.Invocation, Attempt: 1, Method: "POST", RequestURI: "/", Host: "h", Remaining: time.Minute,
		ContentLength: int64(len(l.body)), Whole: l.body == nil,
	}
	l.conn.CommitLater(call.Append(l.conn.Begin(), number))
	if body := l.body; body != nil {
		out := callwire.NewOutflow(l.conn, number)
		l.out[number] = out
		go func() {
			if _, err := out.Write(body); err == nil {
				end := callwire.End{}
				l.conn.Commit(end.Append(l.conn.Begin(), number))
			}
		}()
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

// serveAgent is the gateway's side of the agent's connection.
func (l *load) serveAgent(conn *callwire.Conn) error {
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	for {
		f, err := conn.Read()
		if err != nil {
			return err
		}
		l.mu.Lock()
		err = l.handle(f)
		l.mu.Unlock()
		if err != nil {
			return err
		}
		if !conn.HasWholeFrame() {
			conn.Flush()
		}
	}
}

// handle handles a frame of the agent. The caller holds the lock.
func (l *load) handle(f callwire.Frame) error {
	n, _ := callwire.ParseCount(f)
	switch f.Kind {
	case callwire.KindClaim:
		claim, err := callwire.ParseClaim(f)
		if err != nil {
			return err
		}
		l.call(f.Call, claim)
	case callwire.KindTakeBack:
		l.lent -= int(n)
	case callwire.KindWindow:
		if out := l.out[f.Call]; out != nil {
			out.Open(n)
		}
	case callwire.KindBody:
		l.conn.CommitLater(callwire.AppendCount(l.conn.Begin(), callwire.KindWindow, f.Call, uint32(len(f.Payload))))
	case callwire.KindHead, callwire.KindEnd, callwire.KindRelease:
		if f.Kind == callwire.KindHead && !f.Has(callwire.FlagWhole) {
			break
		}
		delete(l.out, f.Call)
		l.running--
		l.done.Add(1)
		if f.Has(callwire.FlagKeeps) || f.Has(callwire.FlagNoCredit) && f.Kind == callwire.KindRelease {
			l.lent++
		}
		l.match()
	}
	return nil
}
