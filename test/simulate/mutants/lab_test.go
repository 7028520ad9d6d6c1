package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/test/simulate/sim"
)

// script is a program.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "simulate")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPatienceIsForTheTimeOfProcessors(t *testing.T) {
	t.Parallel()
	waits := script(t, "sleep 2\necho 'violation seed=7 a rule (invocation 1, at 1s)'\nexit 1\n")
	if seed, rule, err := firstViolation(t.Context(), time.Second, waits); seed != 7 || rule != "a rule" || err != nil {
		t.Errorf("of one that had to wait for processors: seed %d, rule %q, error %v", seed, rule, err)
	}
	never := script(t, "while :; do :; done\n")
	if _, _, err := firstViolation(t.Context(), time.Second, never); err == nil || !strings.Contains(err.Error(), "come to an end") {
		t.Errorf("of one that never ends: %v", err)
	}
}

func TestAMutantMayNotTakeAllMemory(t *testing.T) {
	t.Parallel()
	says := script(t, "echo \"violation seed=7 $(ulimit -v) (invocation 1, at 1s)\"\nexit 1\n")
	if _, limit, err := firstViolation(t.Context(), time.Second, says); limit != mostMemory || err != nil {
		t.Errorf("its limit is %q, error %v", limit, err)
	}
}

func TestASimulatorThatFailsSaysWhy(t *testing.T) {
	fails := script(t, "echo 'out of luck' >&2\nexit 3\n")
	if _, _, err := firstViolation(t.Context(), time.Second, fails); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("error %v", err)
	}
}

func TestAViolationIsReadAsItIsPrinted(t *testing.T) {
	v := sim.Violation{Rule: sim.RuleInTime, Invocation: 12, At: 1500 * time.Millisecond}
	found := noticed.FindStringSubmatch("violation seed=7 " + v.String() + "\n  replay: go run\n")
	if len(found) != 3 || found[1] != "7" || found[2] != string(sim.RuleInTime) {
		t.Errorf("read %q", found)
	}
}
