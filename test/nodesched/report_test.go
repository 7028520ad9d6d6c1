package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestHandoversAreWhenACallIsDueAndNoneRuns(t *testing.T) {
	results := []result{
		{due: 0, began: 1 * ms, exec: 10 * ms},         // it takes 1 ms to begin
		{due: 2 * ms, began: 14 * ms, exec: 5 * ms},    // 3 ms after the one before
		{due: 3 * ms, began: 15 * ms, exec: 20 * ms},   // beside it
		{due: 50 * ms, began: 50 * ms, exec: 1 * ms},   // nothing was due
		{due: 50 * ms, began: 53 * ms, exec: 100 * ms}, // 2 ms
	}
	if got, want := handovers(results), []float64{0.001, 0.003, 0.002}; !slices.EqualFunc(got, want, near) {
		t.Errorf("%v, want %v", got, want)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestWhatCallsWaitForAFault(t *testing.T) {
	results := []result{
		{call: call{at: 1 * ms}, due: 101 * ms, began: 109 * ms}, // it began before
		{call: call{at: 5 * ms}, due: 105 * ms, began: 117 * ms}, // 7 ms of 12
		{call: call{at: 12 * ms}, due: 112 * ms, began: 116 * ms},
		{call: call{at: 20 * ms}, due: 120 * ms, began: 190 * ms}, // it came afterwards
	}
	if got := longestWait(results, 10*ms, 15*ms); got != 7*ms {
		t.Errorf("%v, want 7ms", got)
	}
}

func TestTracesAreWhatTheirSeedsSay(t *testing.T) {
	for name := range shapes {
		one, err := newTrace(name, 1, .9, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		same, _ := newTrace(name, 1, .9, 5*time.Second)
		other, _ := newTrace(name, 2, .9, 5*time.Second)
		if len(one.calls) == 0 || !slices.Equal(one.calls, same.calls) || slices.Equal(one.calls, other.calls) {
			t.Errorf("%s: %d calls", name, len(one.calls))
		}
		for _, c := range one.calls {
			if one.instances[c.function] == 0 || c.cpu <= 0 {
				t.Errorf("%s: %+v cannot run", name, c)
			}
		}
	}
}

func TestNoOrderIsBelowTheLeastResponse(t *testing.T) {
	of := func(at, sleep, cpu time.Duration) result {
		return result{call: call{at: at, sleep: sleep, cpu: cpu, function: "f"}}
	}
	// The second interrupts the first; the third sleeps beside both, and then has the core.
	o := outcome{results: []result{of(0, 0, 30*ms), of(10*ms, 0, 5*ms), of(0, 100*ms, 10*ms)}}
	if got, want := leastResponse(o), (35*ms+5*ms+110*ms).Seconds()/3; !near(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAGoalThatNoOrderCanReachIsSaidToBeSo(t *testing.T) {
	o := outcome{results: []result{{call: call{cpu: 10 * ms, function: "f"}, turnaround: 30 * ms}}}
	for least, want := range map[float64]string{2.5: "within reach", 10: "out of the reach of every order"} {
		var text strings.Builder
		judgeReach(&text, "zuk", bar{name: "mean_stretch", over: "off", least: least, of: func(o outcome) float64 { return mean(o.slowdowns("")) }, floor: func(outcome) float64 { return 1 }}, []outcome{o})
		if !strings.HasPrefix(text.String(), "zuk_mean_stretch_off_over_any_order=3.00 ") || !strings.Contains(text.String(), want) {
			t.Errorf("goal %v: %s", least, text.String())
		}
	}
}

// The figures are those of a record in which the harness slowed down SFS.
func TestAPolicyForWhichTheHarnessSwitchesIsFound(t *testing.T) {
	per := func(calls ...float64) (all []outcome) {
		for _, n := range calls {
			all = append(all, outcome{results: make([]result, 10), switches: int64(n * 10)})
		}
		return all
	}
	var text strings.Builder
	judgeSwitches(&text, "azure", []policy{{name: "off"}, {name: "sfs"}, {name: "serpt"}, {name: "fifo"}}, map[string][]outcome{
		"off": per(263.9, 308.4, 311.7), "sfs": per(2361.4, 2267.0, 2274.0), "serpt": per(358.2, 365.5, 372.0),
	})
	if want := "azure_switches_sfs_over_off=7.351 goal<=2 MISSED\nazure_switches_serpt_over_off=1.193 goal<=2 met\n"; text.String() != want {
		t.Errorf("%s, want %s", text.String(), want)
	}
}
