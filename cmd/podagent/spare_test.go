package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// language is a runtime whose shim can be that of a spare instance, with a handler
// that answers who it is.
type language struct {
	name, program, shim string
	file, source        string
}

var spareLanguages = []language{
	{"python3.13", "python3", "python3/bootstrap.py", "app.py",
		"import os\n\ndef handler(event, context):\n    return [event, os.environ['GREETING'], context.function_name]\n"},
	{"nodejs22.x", "node", "nodejs/bootstrap.mjs", "app.js",
		"exports.handler = async (event, context) => [event, process.env.GREETING, context.functionName];\n"},
}

// stock is a control plane with one spare instance.
type stock struct {
	agentwire.UnimplementedInstancesServer
	addr, gateway string
	// spares and instances have those that said hello, and answers the results.
	spares, instances chan *talk
	answers           <-chan callwire.Head
}

// talk is the stream of an instance.
type talk struct {
	hello  *agentwire.Hello
	stream grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]
	pulls  chan *agentwire.Pull
	ended  chan struct{}
}

func newStock(t testing.TB) *stock {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stock{addr: l.Addr().String(), spares: make(chan *talk, 10), instances: make(chan *talk, 10)}
	s.gateway, s.answers = newGateway(t, callwire.Call{
		Attempt: 1, Method: "POST", RequestURI: "/", Host: "h", Whole: true, Body: []byte(`{"n":1}`), Remaining: time.Minute,
	})
	server := grpc.NewServer()
	agentwire.RegisterInstancesServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return s
}

func (s *stock) Pull(stream grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]) error {
	talk := &talk{stream: stream, pulls: make(chan *agentwire.Pull, 10), ended: make(chan struct{})}
	defer close(talk.ended)
	for {
		msg, err := stream.Recv()
		if err != nil {
			return nil
		}
		switch kind := msg.GetKind().(type) {
		case *agentwire.PullRequest_Hello:
			talk.hello = kind.Hello
			if talk.hello.GetSpare() {
				s.spares <- talk
			} else {
				s.instances <- talk
			}
		case *agentwire.PullRequest_Pull:
			talk.pulls <- kind.Pull
		}
	}
}

// startSpare runs an agent and a shim beside it, as the pod of a spare instance does,
// until end is called.
func (s *stock) startSpare(t testing.TB, lang language) (end func()) {
	t.Helper()
	interpreter, err := exec.LookPath(lang.program)
	if err != nil {
		t.Skipf("%s is not on PATH, so its shim cannot be run", lang.program)
	}
	shim, err := filepath.Abs(filepath.Join("../../internal/runtimes/shims", lang.shim))
	if err != nil {
		t.Fatal(err)
	}
	config := spareConfig(t, s.addr)
	start, stop, ended := program(t, config.Environ())
	start()
	var said bytes.Buffer
	cmd := exec.Command(interpreter, shim)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "WINDLASS_SPARE=true", "PYTHONDONTWRITEBYTECODE=1",
		"LAMBDA_TASK_ROOT=" + filepath.Join(t.TempDir(), "task"), fmt.Sprintf("AWS_LAMBDA_RUNTIME_API=127.0.0.1:%d", config.Port),
	}
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() {
		t.Helper()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || said.Len() > 0 {
			t.Errorf("the shim ended with %v and said %q", err, said.String())
		}
		stop()
		if code, stderr := ended(); code != 0 {
			t.Errorf("the agent ended with %d:\n%s", code, stderr)
		}
	}
}

func spareConfig(t testing.TB, scheduler string) agentenv.Config {
	t.Helper()
	return agentenv.Config{
		Spare: true, Scheduler: scheduler, Owner: scheduler, Token: "secret",
		Protocol: agentenv.ProtocolLambdaRuntime, Port: freePort(t), StartupTimeout: time.Minute,
	}
}

// assign makes a spare instance the function's, and returns its stream after it has
// asked for calls, and how long that took.
func (s *stock) assign(t testing.TB, spare *talk, lang language) (*talk, time.Duration) {
	t.Helper()
	begun := time.Now()
	send(t, spare, &agentwire.PullReply{Kind: &agentwire.PullReply_Assignment{Assignment: &agentwire.Assignment{
		FunctionUid: "uid", Function: "shop/greeter", Revision: "3", Cid: "cid", Concurrency: 1,
		StartupTimeoutNs: int64(time.Minute), BackoffAfterNs: int64(time.Minute), IdleTimeoutNs: int64(time.Minute),
		Variables: []*agentwire.Variable{
			{Name: "_HANDLER", Value: "app.handler"}, {Name: "GREETING", Value: "ahoy"}, {Name: "AWS_LAMBDA_FUNCTION_NAME", Value: "greeter"},
		},
		Files: []*agentwire.File{{Path: lang.file, Content: []byte(lang.source)}},
	}}})
	instance := await(t, "the instance", s.instances)
	await(t, "its first pull", instance.pulls)
	return instance, time.Since(begun)
}

func send(t testing.TB, to *talk, reply *agentwire.PullReply) {
	t.Helper()
	if err := to.stream.Send(reply); err != nil {
		t.Fatal(err)
	}
}

// patience ends a test that hangs; nothing is measured by it.
const patience = time.Minute

func await[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func TestASpareInstanceAnswersACall(t *testing.T) {
	for _, lang := range spareLanguages {
		t.Run(lang.name, func(t *testing.T) {
			s := newStock(t)
			end := s.startSpare(t, lang)
			instance, _ := s.assign(t, await(t, "the spare instance", s.spares), lang)
			if h := instance.hello; h.GetFunctionUid() != "uid" || h.GetRevision() != "3" || h.GetCid() != "cid" || h.GetToken() != "secret" {
				t.Errorf("it says hello as %v", h)
			}
			send(t, instance, &agentwire.PullReply{Kind: &agentwire.PullReply_Ticket{Ticket: &agentwire.Ticket{
				InvocationId: []byte("0123456789abcdef"), Gateway: s.gateway,
			}}})
			answer := await(t, "the answer", s.answers)
			var got bytes.Buffer
			if err := json.Compact(&got, answer.Body); err != nil || got.String() != `[{"n":1},"ahoy","greeter"]` || !answer.Cold {
				t.Errorf("the answer is %v", answer)
			}
			await(t, "its second pull", instance.pulls)
			end()
			await(t, "its end", instance.ended)
			if len(s.spares) > 0 {
				t.Error("it was a spare instance again")
			}
		})
	}
}

func TestASpareInstanceWhoseImageKnowsNoneSaysSo(t *testing.T) {
	s := newStock(t)
	config := spareConfig(t, s.addr)
	start, _, end := program(t, config.Environ())
	start()
	answer := nextEvent(t, config.Port, nil)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("it was answered with %s", answer.Status)
	}
	if code, stderr := end(); code != 1 || !strings.Contains(stderr, "its image must know warm pools") {
		t.Errorf("the agent ended with %d:\n%s", code, stderr)
	}
	if len(s.spares) > 0 {
		t.Error("it offered itself")
	}
}

// BenchmarkAssignment prints how long a spare instance takes from its assignment to
// its first pull: half of them took as long as p50-ms at most.
func BenchmarkAssignment(b *testing.B) {
	for _, lang := range spareLanguages {
		b.Run(lang.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				s := newStock(b)
				end := s.startSpare(b, lang)
				spare := await(b, "the spare instance", s.spares)
				<-time.After(300 * time.Millisecond) // it waits, as it does most of its life
				_, d := s.assign(b, spare, lang)
				took = append(took, d)
				end()
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
			b.ReportMetric(took[len(took)-1].Seconds()*1e3, "max-ms")
		})
	}
}
