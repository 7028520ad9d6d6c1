package replay

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/internal/workload"
)

// calls are n calls of a function, all of the same duration.
func calls(function string, n int, d time.Duration) []workload.Arrival {
	var arrivals []workload.Arrival
	for range n {
		arrivals = append(arrivals, workload.Arrival{Function: function, Duration: d})
	}
	return arrivals
}

func trace(parts ...[]workload.Arrival) workload.Trace {
	t := workload.Trace{Name: "t"}
	for _, p := range parts {
		t.Arrivals = append(t.Arrivals, p...)
	}
	return t
}

func targetsOf(t *testing.T, m Mapping, functions ...string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, f := range functions {
		target, ok := m.Target(f)
		if !ok {
			t.Fatalf("function %s has no target", f)
		}
		got[f] = target.Function
	}
	return got
}

func TestAFunctionGoesToTheNarrowestClassThatHoldsItsMedian(t *testing.T) {
	tr := trace(
		calls("edge", 1, 50*ms),
		calls("beyond", 1, 51*ms),
		calls("long", 1, 5*time.Second),
		calls("mixed", 3, 10*ms), calls("mixed", 2, 9*time.Second),
	)
	m := mapped(t, tr, target("any", 0), target("mid", 100*ms), target("short", 50*ms))
	want := map[string]string{"edge": "short", "beyond": "mid", "long": "any", "mixed": "short"}
	if diff := cmp.Diff(want, targetsOf(t, m, "edge", "beyond", "long", "mixed")); diff != "" {
		t.Error(diff)
	}
	if _, ok := m.Target("unknown"); ok {
		t.Error("a function that is not in the trace has a target")
	}
}

func TestTargetsOfOneClassShareTheCallsEvenly(t *testing.T) {
	tr := trace(calls("a", 3, ms), calls("b", 10, ms), calls("c", 4, ms), calls("d", 3, ms))
	m := mapped(t, tr, target("one", 0), target("two", 0))
	want := map[string]string{"b": "one", "c": "two", "a": "two", "d": "two"}
	if diff := cmp.Diff(want, targetsOf(t, m, "a", "b", "c", "d")); diff != "" {
		t.Error(diff)
	}
	wantLines := []string{
		"one (any duration): 1 functions of the trace, 10 calls",
		"two (any duration): 3 functions of the trace, 10 calls",
	}
	if diff := cmp.Diff(wantLines, m.Describe()); diff != "" {
		t.Error(diff)
	}
}

func TestAMappingThatCannotBeMadeSaysWhy(t *testing.T) {
	noPath := target("f", 0)
	noPath.Path = nil
	relative := target("f", 0)
	relative.Path = func(time.Duration) string { return "f" }
	noMethod := target("f", 0)
	noMethod.Method = ""
	for name, tt := range map[string]struct {
		targets []Target
		want    string
	}{
		"no target":      {nil, "there is no target"},
		"no name":        {[]Target{target("", 0)}, "has no Function"},
		"negative bound": {[]Target{target("f", -1)}, "UpTo of target f"},
		"no method":      {[]Target{noMethod}, "has no Method"},
		"no path":        {[]Target{noPath}, "must begin with a slash"},
		"relative path":  {[]Target{relative}, "must begin with a slash"},
		"all too short":  {[]Target{target("f", ms)}, "function long of trace \"t\" takes 2ms"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewMapping(trace(calls("long", 1, 2*ms)), tt.targets); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}
