package main

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/test/simulate/sim"
)

func TestAViolationIsReadAsItIsPrinted(t *testing.T) {
	v := sim.Violation{Rule: sim.RuleInTime, Invocation: 12, At: 1500 * time.Millisecond}
	found := noticed.FindStringSubmatch("violation seed=7 " + v.String() + "\n  replay: go run\n")
	if len(found) != 3 || found[1] != "7" || found[2] != string(sim.RuleInTime) {
		t.Errorf("read %q", found)
	}
}
