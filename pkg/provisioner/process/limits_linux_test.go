package process

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestACPULimitBindsTheFunctionToCores(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("one core cannot be divided")
	}
	th := newHarness(t, noTimeout)
	spec := specFor(th.path, "c-1")
	spec.Function.Spec.Template.Resources.Limits = amounts("500m", "")
	th.Start(spec)
	function, agent := th.await(roleFunction, "c-1"), th.await(roleAgent, "c-1")
	for _, c := range []struct {
		p    *testProgram
		want int
	}{{function, 1}, {agent, runtime.NumCPU()}} {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", c.p.pid))
		if err != nil || len(threads) < 2 {
			t.Fatalf("the %s has the threads %v, %v", c.p.role, threads, err)
		}
		for _, thread := range threads {
			tid, err := strconv.Atoi(filepath.Base(thread))
			if err != nil {
				t.Fatal(err)
			}
			var set unix.CPUSet
			err = unix.SchedGetaffinity(tid, &set)
			if errors.Is(err, unix.ESRCH) {
				continue // it has ended
			}
			if err != nil {
				t.Fatal(err)
			}
			if set.Count() != c.want {
				t.Errorf("thread %d of the %s, process %d, may run on %d cores, want %d", tid, c.p.role, c.p.pid, set.Count(), c.want)
			}
		}
		if got := c.p.request("cores"); got != strconv.Itoa(c.want) {
			t.Errorf("the %s has seen %s cores at its start, want %d", c.p.role, got, c.want)
		}
	}
}

// A child inherits the affinity that its parent's thread has at the fork.
func TestAFunctionIsForkedOnItsCores(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("one core cannot be divided")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cores := func() int {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Fatal(err)
		}
		return set.Count()
	}
	l := newLimiter(slog.New(slog.DiscardHandler))
	for _, want := range []error{nil, os.ErrNotExist} {
		atFork := 0
		err := l.onCores(1, func() error {
			atFork = cores()
			return want
		})
		if !errors.Is(err, want) || atFork != 1 || cores() != runtime.NumCPU() {
			t.Errorf("%v; at the fork the thread may run on %d cores, and after it on %d", err, atFork, cores())
		}
	}
}

// sleeper is a program that sleeps until the test ends, if there is one at path.
func sleeper(t *testing.T, path string) *exec.Cmd {
	cmd := &exec.Cmd{Path: path, Args: []string{path, "1000"}, SysProcAttr: childAttr(0)}
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// stateOf is what /proc says of a process.
func stateOf(t *testing.T, pid int, field string) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\n"+field+":\t")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func TestAMemoryLimitIsSetBeforeTheFunctionRuns(t *testing.T) {
	for name, c := range map[string]struct {
		cannotTrace bool
		path        string
		fails       bool
	}{
		"a program":                             {false, "/bin/sleep", false},
		"where no child can be traced":          {true, "/bin/sleep", false},
		"a program that is not there":           {false, "/bin/nowhere", true},
		"one that is not there, without traces": {true, "/bin/nowhere", true},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			l := &limiter{log: slog.New(slog.DiscardHandler), cannotTrace: c.cannotTrace}
			function, state := sleeper(t, c.path), ""
			err := l.beforeItRuns(function, func(pid int) { state = stateOf(t, pid, "State") })
			if c.fails {
				if !errors.Is(err, os.ErrNotExist) || l.cannotTrace != c.cannotTrace {
					t.Errorf("got %v; it cannot trace: %t", err, l.cannotTrace)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !l.cannotTrace && state != "t (tracing stop)" {
				t.Errorf("its state is %s when it is limited", state)
			}
			if tracer := stateOf(t, function.Process.Pid, "TracerPid"); tracer != "0" || function.SysProcAttr.Pdeathsig != unix.SIGKILL {
				t.Errorf("process %s still traces it", tracer)
			}
		})
	}
}

// The detector of races takes too much memory to be limited, so the shell says its limit.
func TestAFunctionHasItsMemoryLimitFromItsStart(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	th := newHarness(t, noTimeout)
	spec := specFor(th.path, "c-1")
	spec.Function.Spec.Template.Command = []string{"sh", "-c", "ulimit -d"}
	spec.Function.Spec.Template.Resources.Limits = amounts("", "64Mi")
	th.Start(spec)
	want := strconv.Itoa((64<<20 + dataHeadroom) / 1024)
	if e := th.exit(); !slices.Contains(e.LogTail, want) {
		t.Errorf("at its start it may have %q KiB of data, want %s", e.LogTail, want)
	}
}
