package process

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
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
