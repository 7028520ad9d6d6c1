package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
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

// Instances of a function are on all nodes in turn.
func TestInstancesTakeTurns(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, notesFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 1, 2, 0, 1} {
		if got, err := turn(dir, "f", 3); err != nil || got != want {
			t.Errorf("node %d, %v; want %d", got, err, want)
		}
	}
	if got, err := turn(dir, "g", 3); err != nil || got != 0 {
		t.Errorf("node %d, %v, of another function", got, err)
	}
}
