package main

import "testing"

func TestGroupsOfFunctionsAreBelowThatOfTheirWindlass(t *testing.T) {
	for own, want := range map[string]string{
		"9:name=systemd:/\n2:cpuacct:/\n1:cpu:/\n0::/\n":                                  "/sys/fs/cgroup/cpu/windlass-*/cpu.idle",
		"4:cpuset:/\n3:cpu,cpuacct:/system.slice/x.service\n0::/system.slice/x.service\n": "/sys/fs/cgroup/cpu/system.slice/x.service/windlass-*/cpu.idle",
		"0::/user.slice/run-1.scope\n":                                                    "/sys/fs/cgroup/user.slice/windlass-*/cpu.idle",
	} {
		if got := bandsOfFunctions(own); got != want {
			t.Errorf("%q: %s, want %s", own, got, want)
		}
	}
}
