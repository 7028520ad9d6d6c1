package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The agent that says nothing differs from the product's in that only.
func TestAnAgentCanBeBuiltThatSaysNothingOfWaits(t *testing.T) {
	source, err := os.ReadFile("../../pkg/podagent/core/node.go")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := withoutWaits(string(source))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(silent, "func sayWait(c *Core, now time.Time) {\n\tif c != nil {\n\t\treturn\n") || len(silent) > len(source)+40 {
		t.Error("more has changed, or less")
	}
	if _, err := withoutWaits(silent[:100]); err == nil {
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
