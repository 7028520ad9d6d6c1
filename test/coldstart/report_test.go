package main

import (
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestReportSaysWhetherTheGoalsWereReached(t *testing.T) {
	var out strings.Builder
	if err := report(&out, []marks{whole(), whole()}); err != nil {
		t.Error(err)
	}
	for _, line := range []string{
		"runs=2", "total_median_ms=560.0", "decide_p90_ms=3.0", "agent_hello_median_ms=40.0", "bind_median_ms=0.0",
		"phases_minus_total_ms=0.0", "unknown=", "implausible=0", "goal_total_below_1500ms=true", "goal_ours_below_100ms=true",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the report has no line %q:\n%s", line, &out)
		}
	}

	slow := whole()
	slow.decided, slow.answered, slow.ready = at(101), at(2000), time.Time{}
	slow.created = at(30) // before it was decided
	out.Reset()
	if err := report(&out, []marks{slow}); err == nil || err.Error() != "goals were missed: goal_total_below_1500ms, goal_ours_below_100ms" {
		t.Errorf("it ends with %v", err)
	}
	for _, line := range []string{
		"ready_median_ms=unknown", "phases_minus_total_ms=unknown", "unknown=ready,claim", "implausible=1",
		"goal_total_below_1500ms=false", "goal_ours_below_100ms=false", "ours_above_100ms=decide,return",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the report has no line %q:\n%s", line, &out)
		}
	}
}

func TestAGoalIsUnknownIfAPhaseIs(t *testing.T) {
	unseen := whole()
	unseen.decided, unseen.created = time.Time{}, time.Time{}
	var out strings.Builder
	if err := report(&out, []marks{whole(), unseen}); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"decide_median_ms=unknown", "goal_total_below_1500ms=true", "goal_ours_below_100ms=unknown", "ours_above_100ms="} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the report has no line %q:\n%s", line, &out)
		}
	}
}

func TestTimeInAnInvocationID(t *testing.T) {
	if got := admitted(invocation.NewID(at(7))); !got.Equal(at(7)) {
		t.Errorf("an id made at %v says %v", at(7), got)
	}
}
