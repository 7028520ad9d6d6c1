package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Functions of an interrupted measurement end a moment after it.
func TestWhatAnInterruptedMeasurementLeavesIsRemoved(t *testing.T) {
	group, folder := "nodesched-test-"+strconv.Itoa(os.Getpid()), filepath.Join(t.TempDir(), "temp")
	function := exec.Command("sleep", "0.5")
	if err := function.Start(); err != nil {
		t.Skip(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- function.Wait() }()
	defer func() { <-ended }()
	for _, h := range hierarchies {
		in := filepath.Join(h, group, "0", "kubepods", "pod1")
		if err := os.MkdirAll(in, 0o755); err != nil {
			t.Skip("control groups of version 1 cannot be made: ", err)
		}
		if err := os.WriteFile(filepath.Join(in, "cgroup.procs"), []byte(strconv.Itoa(function.Process.Pid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, "nodes"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeAfter(group, folder, strings.NewReader("")); err != nil {
		t.Error(err)
	}
	for _, left := range []string{folder, filepath.Join(hierarchies[0], group), filepath.Join(hierarchies[1], group)} {
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
}
