package process

import (
	"runtime"
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
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(c.p.pid, &set); err != nil {
			t.Fatal(err)
		}
		if set.Count() != c.want {
			t.Errorf("the %s may run on %d cores, want %d", c.p.role, set.Count(), c.want)
		}
	}
}
