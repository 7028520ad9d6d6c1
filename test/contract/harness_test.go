package contract

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

var (
	command = flag.String("command", "", "the command that runs the image, instead of the runtimes that Windlass brings along; {task} and {env} are replaced")
	code    = flag.String("code", "", "the folder with the handler contract.handler for -command")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends a test that hangs; nothing is measured by it.
const patience = 30 * time.Second

// subject is a runtime that is checked.
type subject struct {
	name    string
	command []string
	// code is the folder with its handlers.
	code string
}

// subjects are the runtime of -command, or those that Windlass brings along.
func subjects(t *testing.T) []subject {
	t.Helper()
	if *command != "" {
		return []subject{{"image", strings.Fields(*command), *code}}
	}
	shim := func(parts ...string) string {
		path, err := filepath.Abs(filepath.Join(append([]string{"../../internal/runtimes/shims"}, parts...)...))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	return []subject{
		{"python3.13", []string{"python3", "-B", shim("python3", "bootstrap.py")}, "testdata/python3.13"},
		{"nodejs22.x", []string{"node", shim("nodejs", "bootstrap.mjs")}, "testdata/nodejs22.x"},
	}
}

// each runs a check of every subject.
func each(t *testing.T, check func(t *testing.T, s subject)) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			if _, err := exec.LookPath(s.command[0]); err != nil {
				t.Skipf("%s is not on PATH", s.command[0])
			}
			check(t, s)
		})
	}
}

// contained tells whether the command runs it in a container, which sees the folders of a
// pod.
func (s subject) contained() bool {
	return slices.ContainsFunc(s.command, func(word string) bool { return strings.Contains(word, "{task}") })
}

// word stands in word.txt.
const word = "☂"

// function is one of the runtime.
func function(handler string, change ...func(*v1alpha1.FunctionTemplate)) *v1alpha1.Function {
	f := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checked", UID: "u"}}
	t := &f.Spec.Template
	t.RuntimeRef.Name, t.Handler = "checked", handler
	t.Code = &v1alpha1.Code{Inline: "-"}
	t.Env = []v1alpha1.EnvVar{{Name: "GREETING", Value: "ahoy = ☂"}}
	for _, c := range change {
		c(t)
	}
	v1alpha1.Default(f)
	return f
}

func clusterRuntime() *v1alpha1.ClusterRuntime {
	rt := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "checked", UID: "r"}}
	rt.Spec.Image, rt.Spec.FileExtension = "checked:1", "x"
	rt.Spec.WarmPools = []v1alpha1.WarmPool{{Name: "small", Size: 1}}
	v1alpha1.DefaultClusterRuntime(rt)
	return rt
}

// input is what a pod of the function is made of.
func input(f *v1alpha1.Function) podspec.Input {
	return podspec.Input{
		Config:   podspec.Config{AgentImage: "agent:1", AgentMemoryLimit: 256 << 20, SchedulerAddr: "scheduler:9443"},
		Function: f, Runtime: clusterRuntime(), CID: "1-1", Node: "node", Decided: time.Unix(0, 0),
	}
}

// spareInput is what a pod of a spare instance is made of.
func spareInput() podspec.Input {
	in := input(nil)
	in.Function = warmpool.PoolFunction(warmpool.Pool{Scheduler: "s", Namespace: "shop", Runtime: "checked", Name: "small"}, in.Runtime)
	return in
}

// environment is that of the function's container.
func environment(t *testing.T, pod *corev1.Pod, err error) (env []adapter.Variable) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "function" })
	for _, v := range pod.Spec.Containers[i].Env {
		env = append(env, adapter.Variable{Name: v.Name, Value: v.Value})
	}
	return env
}

// harness is where one instance of a subject runs.
type harness struct {
	t *testing.T
	subject
	// task is the folder of the code, and api where the Runtime API is.
	task, api string
	listener  *recorded
}

func newStage(t *testing.T, s subject) *harness {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	st := &harness{t: t, subject: s, task: filepath.Join(t.TempDir(), "task"), api: l.Addr().String(), listener: &recorded{Listener: l, grew: make(chan struct{}, 1)}}
	if err := os.CopyFS(st.task, os.DirFS(s.code)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(st.task, "word.txt"), []byte(word), 0o644); err != nil {
		t.Fatal(err)
	}
	return st
}

// here are variables as they are on this machine: another address of the Runtime API, and
// without a container another folder.
func (s *harness) here(variables []adapter.Variable, task string) []adapter.Variable {
	out := slices.Clone(variables)
	for i, v := range out {
		switch {
		case v.Name == "AWS_LAMBDA_RUNTIME_API":
			out[i].Value = s.api
		case v.Name == "LAMBDA_TASK_ROOT" && !s.contained():
			out[i].Value = task
		}
	}
	return out
}

// run starts the subject in a folder, for the rest of the test.
func (s *harness) run(dir string, env []adapter.Variable) *program {
	s.t.Helper()
	var flags, pairs []string
	for _, v := range env {
		flags, pairs = append(flags, "--env", v.Name+"="+v.Value), append(pairs, v.Name+"="+v.Value)
	}
	words := make([]string, 0, len(s.command)+len(flags))
	for _, w := range s.command {
		if w == "{env}" {
			words = append(words, flags...)
			continue
		}
		words = append(words, strings.ReplaceAll(w, "{task}", s.task))
	}
	if s.contained() {
		return start(s.t, dir, words, os.Environ())
	}
	return start(s.t, dir, words, append([]string{"PATH=" + os.Getenv("PATH")}, pairs...))
}

// agent serves the Runtime API as the agent does, until the test or stop ends it.
func (s *harness) agent(a *lambda.Adapter) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, s.listener) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// standIn serves the Runtime API in a way in which the agent never does.
func (s *harness) standIn(handler http.HandlerFunc) {
	s.t.Helper()
	server := &http.Server{Handler: handler}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.listener) }()
	s.t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
}

// program is one that runs.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	exited chan struct{}
	said   bytes.Buffer // until exited is closed it is being written to
}

func start(t *testing.T, dir string, words, env []string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(words[0], words[1:]...), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, env, &p.said, &p.said
	p.cmd.WaitDelay = patience
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("the runtime wrote:\n%s", &p.said)
		}
	})
	return p
}

// terminate asks it to end, as the kubelet does.
func (p *program) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end, and wants it to be one with status 0, or with another one.
func (p *program) ends(well bool) {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatal("it has not ended")
	}
	if status := p.cmd.ProcessState.ExitCode(); (status == 0) != well {
		p.t.Errorf("it ended with status %d; want %s", status, map[bool]string{true: "0", false: "another than 0"}[well])
	}
}

// recorded notes which requests come by its connections.
type recorded struct {
	net.Listener

	mu   sync.Mutex
	seen []string
	grew chan struct{}
}

func (r *recorded) Accept() (net.Conn, error) {
	c, err := r.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &recordedConn{Conn: c, to: r}, nil
}

type recordedConn struct {
	net.Conn
	to    *recorded
	ahead []byte // the byte that net/http reads ahead while a handler runs
}

var requestLine = regexp.MustCompile(`(?m)^(GET|POST|PUT|HEAD|DELETE) (\S+) HTTP/1\.[01]\r$`)

func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if len(p) == 1 {
		c.ahead = append(c.ahead[:0], p[:n]...)
		return n, err
	}
	for _, m := range requestLine.FindAllSubmatch(append(c.ahead, p[:n]...), -1) {
		c.to.note(fmt.Sprintf("%s %s", m[1], m[2]))
	}
	c.ahead = c.ahead[:0]
	return n, err
}

func (r *recorded) note(request string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, request)
	select {
	case r.grew <- struct{}{}:
	default:
	}
}

func (r *recorded) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// await waits until a request has come so often.
func (r *recorded) await(t *testing.T, request string, times int) {
	t.Helper()
	late := time.After(patience)
	for {
		n := 0
		for _, seen := range r.requests() {
			if seen == request {
				n++
			}
		}
		if n >= times {
			return
		}
		select {
		case <-r.grew:
		case <-late:
			t.Fatalf("%q came %d times, want %d; there were %q", request, n, times, r.requests())
		}
	}
}

// result takes an answer.
type result struct {
	head adapter.Head
	body bytes.Buffer
}

func (r *result) WriteHead(h adapter.Head) error       { r.head = h; return nil }
func (r *result) Write(p []byte) (int, error)          { return r.body.Write(p) }
func (r *result) WriteTrailer(invocation.Fields) error { return nil }
func waiting(t *testing.T) context.Context             { return within(t, patience) }
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// call has the instance run one call.
func call(t *testing.T, a *lambda.Adapter, id, event string) *result {
	t.Helper()
	ctx, w := waiting(t), &result{}
	deadline, _ := ctx.Deadline()
	in := &adapter.Call{
		ID: fmt.Sprintf("%032s", id), Attempt: 1, Method: http.MethodPost, RequestURI: "/", Host: "checked",
		Header: invocation.Fields{{Name: "Content-Type", Value: "application/json"}}, ContentLength: int64(len(event)), Body: bytes.NewReader([]byte(event)), Deadline: deadline,
	}
	if err := a.Invoke(ctx, in, w); err != nil {
		t.Fatalf("the event %s: %v", event, err)
	}
	return w
}

var _ io.Writer = (*result)(nil)
