package main

import (
	"strings"
	"testing"
	"time"
)

func TestReportSaysWhetherTheGoalsWereReached(t *testing.T) {
	var out strings.Builder
	if err := report(&out, []marks{whole(), whole()}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"runs=2", "total_median_ms=560.0", "decide_p90_ms=3.0", "agent_hello_median_ms=40.0", "bind_median_ms=0.0",
		"stages_minus_total_ms=0.0", "unknown=", "goal_total_below_1500ms=true", "goal_ours_below_100ms=true",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the report has no line %q:\n%s", line, &out)
		}
	}

	slow := whole()
	slow.decided, slow.answered, slow.ready = at(101), at(2000), time.Time{}
	slow.created = at(102)
	out.Reset()
	if err := report(&out, []marks{slow}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"ready_median_ms=unknown", "stages_minus_total_ms=unknown", "unknown=ready,claim",
		"goal_total_below_1500ms=false", "goal_ours_below_100ms=false", "ours_above_100ms=decide,return",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the report has no line %q:\n%s", line, &out)
		}
	}
}
