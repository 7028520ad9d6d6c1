package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFiguresAreOfOneThing(t *testing.T) {
	before := snapshot{memory{1000, 5000, 10}, memory{2000, 6000, 20}, memory{0, 100, 5}}
	after := snapshot{memory{31_000, 55_000, 50}, memory{12_009, 26_000, 31}, memory{100_000, 200_100, 5}}
	var out strings.Builder
	one := after.each(before, 10)
	one.printEach(&out, "agent")
	one.printHost(&out, "agent")
	one.printGoroutines(&out, "agent")
	want := `density_agent_bytes=4000
density_agent_bytes_scheduler=3000
density_agent_bytes_gateway=1000
density_agent_resident=7000
density_agent_resident_scheduler=5000
density_agent_resident_gateway=2000
density_agent_bytes_host=10000
density_agent_resident_host=20000
density_agent_goroutines_scheduler=4.00
density_agent_goroutines_gateway=1.10
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestCPUIsAShareOfACore(t *testing.T) {
	var out strings.Builder
	before := spent{time.Second, 2 * time.Second}
	spent{1500 * time.Millisecond, 2 * time.Second}.printShare(&out, "quiet_", before, 10*time.Second)
	want := "density_quiet_cpu_percent_scheduler=5.0\ndensity_quiet_cpu_percent_gateway=0.0\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestMemoryThatStaysIsSteady(t *testing.T) {
	at := func(scheduler, gateway int64) snapshot {
		return snapshot{memory{scheduler, 1, 1}, memory{gateway, 1, 1}, memory{}}
	}
	for _, c := range []struct {
		a, b snapshot
		want bool
	}{
		{at(1000, 1000), at(1000, 1000), true},
		{at(1000, 1000), at(1009, 1000), true},
		{at(1000, 1000), at(1020, 1000), false},
		{at(1000, 1000), at(1000, 980), false},
	} {
		if got := c.a.isNear(c.b); got != c.want {
			t.Errorf("%v is near %v: %v", c.a, c.b, got)
		}
	}
}

func TestOptionsFitTogether(t *testing.T) {
	for _, c := range []struct {
		functions, agents, instances int
		ok                           bool
	}{
		{10, 5, 1, true}, {10, 100, 10, true}, {10, 11, 1, false}, {10, 15, 10, false}, {0, 1, 1, false}, {1, 0, 1, false}, {1, 1, 0, false},
	} {
		o := options{functions: c.functions, agents: c.agents, instances: c.instances}
		if err := o.validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
