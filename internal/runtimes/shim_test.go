package runtimes

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends a test that hangs; nothing is measured by it.
const patience = time.Minute

// withPatience is a context for waiting.
func withPatience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// receive waits for a value.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// need skips the test if a language is not installed.
func need(t *testing.T, runtime v1alpha1.RuntimeName) string {
	t.Helper()
	program := map[v1alpha1.RuntimeName]string{v1alpha1.RuntimePython313: "python3", v1alpha1.RuntimeNodeJS22: "node"}[runtime]
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not on PATH, so its shim cannot be run", program)
	}
	return path
}

// shim is a running shim.
type shim struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout chan string // lines
	exited chan int

	mu     sync.Mutex
	stderr strings.Builder
	wrote  chan struct{} // has a value if stderr grew
}

func (s *shim) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.wrote <- struct{}{}:
	default:
	}
	return s.stderr.Write(p)
}

// errors is what the shim has written to standard error.
func (s *shim) errors() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
}

// startShim launches inline source for the rest of the test.
func startShim(t *testing.T, runtime v1alpha1.RuntimeName, protocol v1alpha1.Protocol, handler, source string, env ...string) *shim {
	t.Helper()
	return startCode(t, Request{Runtime: runtime, Protocol: protocol, Handler: handler, Code: &v1alpha1.Code{Inline: source}}, env...)
}

// startCode launches any code for the rest of the test.
func startCode(t *testing.T, r Request, env ...string) *shim {
	t.Helper()
	need(t, r.Runtime)
	r.WorkDir = t.TempDir()
	l, err := Launch(r)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, l.Argv, l.Dir, append(l.Env, env...)...)
}

// startBare runs a shim as an image does, with no variables but these.
func startBare(t *testing.T, runtime v1alpha1.RuntimeName, env ...string) *shim {
	t.Helper()
	program := need(t, runtime)
	dir := t.TempDir()
	lang, _ := languageOf(runtime)
	if err := writeShims(dir, lang.shims); err != nil {
		t.Fatal(err)
	}
	return start(t, []string{program, filepath.Join(dir, lang.main)}, dir, env...)
}

func start(t *testing.T, argv []string, dir string, env ...string) *shim {
	t.Helper()
	s := &shim{t: t, cmd: exec.Command(argv[0], argv[1:]...), stdout: make(chan string, 1000), exited: make(chan int, 1), wrote: make(chan struct{}, 1)}
	s.cmd.Dir = dir
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	s.cmd.Stderr = s
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.stdout <- lines.Text()
		}
		_ = s.cmd.Wait()
		s.exited <- s.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("standard error of the shim:\n%s", s.errors())
		}
	})
	return s
}

func (s *shim) terminate() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
}

// expectExit waits for the end of the process.
func (s *shim) expectExit(want int) {
	s.t.Helper()
	if got := receive(s.t, "the end of the shim", s.exited); got != want {
		s.t.Errorf("the shim ended with status %d, want %d", got, want)
	}
}

// expectError waits until the shim has said something on standard error.
func (s *shim) expectError(want string) {
	s.t.Helper()
	ctx := withPatience(s.t)
	for !strings.Contains(s.errors(), want) {
		select {
		case <-s.wrote:
		case <-ctx.Done():
			s.t.Errorf("standard error %q does not say %q", s.errors(), want)
			return
		}
	}
}

func TestShimsAreValidSource(t *testing.T) {
	dir := t.TempDir()
	for _, lang := range languages {
		runtime := lang.name
		if err := writeShims(filepath.Join(dir, lang.shims), lang.shims); err != nil {
			t.Fatal(err)
		}
		t.Run(string(runtime), func(t *testing.T) {
			program := need(t, runtime)
			files, err := filepath.Glob(filepath.Join(dir, lang.shims, "*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("shims: %v, %v", files, err)
			}
			for _, file := range files {
				args := []string{"--check", file}
				if runtime == v1alpha1.RuntimePython313 {
					args = []string{"-m", "py_compile", file}
				}
				if out, err := exec.CommandContext(withPatience(t), program, args...).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", filepath.Base(file), err, out)
				}
			}
		})
	}
}
