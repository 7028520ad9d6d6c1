package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// asProgram makes the test's binary be the program.
const asProgram = "PODAGENT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// program runs the program with an environment, and with the files that it
// inherits, until it ends.
func program(t testing.TB, env []string, inherited ...*os.File) (start func(), stop func(), end func() (code int, stderr string)) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(exe)
	cmd.Env = append(slices.Clone(env), asProgram+"=1", "GOCOVERDIR="+t.TempDir())
	cmd.Stderr = &stderr
	cmd.ExtraFiles = inherited
	start = func() {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
	}
	stop = func() { _ = cmd.Process.Signal(syscall.SIGTERM) }
	end = func() (int, string) {
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), stderr.String()
	}
	return start, stop, end
}

func config() agentenv.Config {
	return agentenv.Config{
		Scheduler: "127.0.0.1:1", FunctionUID: "uid", Function: "default/f", Revision: "1", CID: "cid", Token: "secret",
		Protocol: agentenv.ProtocolHTTP, Port: 1, Concurrency: 1,
		StartupTimeout: time.Minute, BackoffAfter: time.Minute, IdleTimeout: time.Minute,
	}
}

func TestEnvironmentThatMakesNoSenseIsExplained(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cases := map[string]struct {
		env  []string
		says []string
	}{
		"empty": {nil, []string{"WINDLASS_SCHEDULER is missing", "WINDLASS_TOKEN or WINDLASS_TOKEN_FILE must be set", `WINDLASS_PORT "" is not a whole number`}},
		"a protocol that is none": {
			append(config().Environ(), "WINDLASS_PROTOCOL=SMTP"), []string{`WINDLASS_PROTOCOL "SMTP" is neither HTTP nor LambdaRuntime`},
		},
		"a port that is taken": {
			append(config().Environ(), "WINDLASS_PROTOCOL=LambdaRuntime", fmt.Sprintf("WINDLASS_PORT=%d", taken.Addr().(*net.TCPAddr).Port)),
			[]string{"WINDLASS_PORT must be free"},
		},
		"a listener that nobody handed over": {
			append(config().Environ(), "WINDLASS_PROTOCOL=LambdaRuntime", "WINDLASS_LISTENER_INHERITED=true"),
			[]string{"WINDLASS_LISTENER_INHERITED needs a listener as file descriptor 4"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start, _, end := program(t, tc.env)
			start()
			code, stderr := end()
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			for _, says := range append(tc.says, "podagent: ") {
				if !strings.Contains(stderr, says) {
					t.Errorf("it says\n%s\nand not %q", stderr, says)
				}
			}
		})
	}
}

// plane is a control plane with one call to be run.
type plane struct {
	agentwire.UnimplementedInstancesServer
	addr, gateway string
	answers       <-chan callwire.Head
	done          chan struct{}           // closed when the agent asks for a second call
	said          chan *agentwire.Goodbye // the last words; closed at the stream's end
}

func newPlane(t *testing.T) *plane {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{addr: l.Addr().String(), done: make(chan struct{}), said: make(chan *agentwire.Goodbye, 1)}
	p.gateway, p.answers = newGateway(t, callwire.Call{
		Attempt: 1, Method: "POST", RequestURI: "/path", Host: "h", Whole: true, Body: []byte("ping"), Remaining: time.Minute,
	})
	server := grpc.NewServer()
	agentwire.RegisterInstancesServer(server, p)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return p
}

func (p *plane) Pull(stream grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]) error {
	defer close(p.said)
	for pulls := 0; ; {
		msg, err := stream.Recv()
		if err != nil {
			return nil
		}
		switch kind := msg.GetKind().(type) {
		case *agentwire.PullRequest_Pull:
			if pulls++; pulls > 1 {
				close(p.done)
				continue
			}
			ticket := &agentwire.Ticket{InvocationId: []byte("0123456789abcdef"), Gateway: p.gateway}
			if err := stream.Send(&agentwire.PullReply{Kind: &agentwire.PullReply_Ticket{Ticket: ticket}}); err != nil {
				return err
			}
		case *agentwire.PullRequest_Goodbye:
			p.said <- kind.Goodbye
		}
	}
}

// function is a function that repeats what it is sent.
func function(t *testing.T) (port int) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// serveOneCall waits for the answer, and until the agent asks for another call.
func (p *plane) serveOneCall(t *testing.T) {
	t.Helper()
	if got, want := string(await(t, "the answer", p.answers).Body), "POST /path ping"; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
	await(t, "a second pull", p.done)
}

func (p *plane) hearGoodbye(t *testing.T, detail string) {
	t.Helper()
	g := <-p.said
	if g.GetReason() != agentwire.Goodbye_REASON_STOPPED || !strings.Contains(g.GetDetail(), detail) {
		t.Errorf("the last words are %v, want STOPPED because of %q", g, detail)
	}
	<-p.said
}

func TestLifeOfTheProgram(t *testing.T) {
	p := newPlane(t)
	c := config()
	c.Scheduler, c.Port = p.addr, function(t)
	start, stop, end := program(t, c.Environ())
	start()
	p.serveOneCall(t)
	stop()
	p.hearGoodbye(t, "terminated")
	if code, stderr := end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestA3TheProgramHearsHowTheFunctionEnded(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	p := newPlane(t)
	c := config()
	c.Scheduler, c.Port, c.EndInherited = p.addr, function(t), true
	start, _, end := program(t, c.Environ(), read)
	start()
	p.serveOneCall(t)
	if _, err := io.WriteString(write, "the function exited with status 3\nits last words"); err != nil {
		t.Fatal(err)
	}
	write.Close()
	g := <-p.said
	if g.GetReason() != agentwire.Goodbye_REASON_FUNCTION_ENDED || g.GetDetail() != "the function exited with status 3" {
		t.Errorf("the last words are %v", g)
	}
	<-p.said
	if code, stderr := end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestARuntimeThatAsksBeforeTheAgentIsThereIsAnswered(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := newPlane(t)
	c := config()
	c.Scheduler, c.Protocol, c.ListenerInherited, c.Port = p.addr, agentenv.ProtocolLambdaRuntime, true, l.Addr().(*net.TCPAddr).Port
	early, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	fmt.Fprint(early, "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	start, stop, end := program(t, c.Environ(), nil, file)
	start()
	next, err := http.ReadResponse(bufio.NewReader(early), nil)
	if err != nil {
		t.Fatal(err)
	}
	answerEvent(t, c.Port, next)
	p.serveOneCall(t)
	stop()
	p.hearGoodbye(t, "terminated")
	if code, stderr := end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestRunLeavesNothingBehind(t *testing.T) {
	for _, protocol := range []string{agentenv.ProtocolHTTP, agentenv.ProtocolLambdaRuntime} {
		t.Run(protocol, func(t *testing.T) {
			p := newPlane(t)
			c := config()
			c.Scheduler, c.Protocol, c.Port = p.addr, protocol, freePort(t)
			if protocol == agentenv.ProtocolHTTP {
				c.Port = function(t)
			}
			for _, kv := range c.Environ() {
				name, value, _ := strings.Cut(kv, "=")
				t.Setenv(name, value)
			}
			ctx, stop := context.WithCancel(t.Context())
			ran := make(chan struct{})
			go func() {
				defer close(ran)
				if err := run(ctx); err != nil {
					t.Error(err)
				}
			}()
			defer func() {
				stop()
				<-ran
			}()
			if protocol == agentenv.ProtocolLambdaRuntime {
				answerEvent(t, c.Port, nextEvent(t, c.Port, ran))
			}
			p.serveOneCall(t)
		})
	}
}

// freePort is a port at which nobody listens.
func freePort(t testing.TB) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func runtimeAPI(port int) string {
	return fmt.Sprintf("http://127.0.0.1:%d/2018-06-01/runtime/invocation/", port)
}

// runtimeClient is a runtime that gives up after a while, as where another program has the port.
func runtimeClient() *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
}

// nextEvent asks the Runtime API for an event, as soon as that is there. Without an agent it fails.
func nextEvent(t *testing.T, port int, ended <-chan struct{}) (next *http.Response) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := runtimeClient()
	err := sleep.Until(ctx, 5*time.Millisecond, func() (yes bool, err error) {
		select {
		case <-ended:
			return false, errors.New("the agent has ended")
		default:
		}
		next, err = client.Get(runtimeAPI(port) + "next")
		if errors.Is(err, syscall.ECONNREFUSED) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// answerEvent answers the event that the Runtime API told next.
func answerEvent(t *testing.T, port int, next *http.Response) {
	t.Helper()
	_ = next.Body.Close()
	id := next.Header.Get("Lambda-Runtime-Aws-Request-Id")
	answer, err := runtimeClient().Post(runtimeAPI(port)+id+"/response", "text/plain", strings.NewReader("POST /path ping"))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

func TestRuntimeAPIThatCannotBeServedEndsTheAgent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken := make(chan error, 1)
	closeIt := serveRuntimeAPI(lambda.New(lambda.Config{Namespace: "default", Function: "f", Concurrency: 1}), l, func(err error) { broken <- err })
	_ = l.Close()
	if err := <-broken; err == nil || !errors.Is(err, net.ErrClosed) {
		t.Errorf("told of %v", err)
	}
	if err := closeIt(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closing says %v", err)
	}
}
