package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An agent that is due to say something, and does not, would take a core for as long as the call waits.
func TestAnAgentThatSaysNothingOfWaitsSleeps(t *testing.T) {
	overlay, err := unsaid(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "said=5 spun=0\n"},
		{[]string{"-overlay", overlay}, "said=0 spun=0\n"},
	} {
		run := exec.Command("go", slices.Concat([]string{"run"}, c.flags, []string{"./testdata/wait"})...)
		run.Stderr = os.Stderr
		if said, err := run.Output(); err != nil || string(said) != c.want {
			t.Errorf("%v: %q, %v; want %q", c.flags, said, err, c.want)
		}
	}
	if _, err := withoutWaits("func sayNothing(c *Core, now time.Time) {\n"); err == nil {
		t.Error("another source has waits, too")
	}
}

func TestCallsThatRanTwiceAreCounted(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	if _, err := twice(runs); err == nil {
		t.Error("nothing was written down")
	}
	if err := os.WriteFile(runs, []byte("a\nb\na\nc\na\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := twice(runs); err != nil || n != 2 {
		t.Errorf("%d calls ran twice, %v", n, err)
	}
}

// Instances of a function are on all nodes in turn, and no node has more places than another: neither of all functions nor of
// the short ones.
func TestInstancesTakeTurns(t *testing.T) {
	of, err := newTrace("azure", 1, .6, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{3, 4} {
		notes := t.TempDir()
		if err := noteFirstNodes(notes, of.instances, n); err != nil {
			t.Fatal(err)
		}
		all, short := make([]int, n), make([]int, n)
		for function, instances := range of.instances {
			each := make([]int, n)
			for range instances {
				node, err := turn(notes, function, n)
				if err != nil {
					t.Fatal(err)
				}
				each[node]++
				all[node]++
				if instances == 6 {
					short[node]++
				}
			}
			if slices.Max(each)-slices.Min(each) > 1 {
				t.Errorf("%d nodes have %v instances of %s", n, each, function)
			}
		}
		for _, places := range [][]int{all, short} {
			if float64(slices.Max(places)) > 1.1*float64(slices.Min(places)) {
				t.Errorf("%d nodes have %v instances", n, places)
			}
		}
	}
	if _, err := turn(t.TempDir(), "f", 3); err == nil {
		t.Error("a function has a node that was given none")
	}
}

// What functions of a node count is what its node agent reads.
func TestANodeKnowsHowManyOfItsCallsWantToCompute(t *testing.T) {
	notes, node := t.TempDir(), t.TempDir()
	t.Setenv(notesVariable, notes)
	t.Setenv(loadVariable, "")
	if err := os.Symlink(filepath.Join(node, wantsFile), wantsOf(notes, unix.Getpgrp())); err != nil {
		t.Fatal(err)
	}
	one, err := ownWants()
	if err != nil {
		t.Fatal(err)
	}
	one.Add(1)
	load, err := loadOf(node)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ownWants()
	if err != nil {
		t.Fatal(err)
	}
	other.Add(1)
	if n, err := load(); err != nil || n != 2 {
		t.Errorf("%d calls want to compute, %v; want 2", n, err)
	}
	one.Add(-1)
	if n, err := load(); err != nil || n != 1 {
		t.Errorf("%d calls want to compute, %v; want 1", n, err)
	}
}
