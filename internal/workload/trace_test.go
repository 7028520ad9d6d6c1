package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func TestValidateNamesTheArrivalThatBreaksAPromise(t *testing.T) {
	for name, tt := range map[string]struct {
		arrivals []Arrival
		want     string
	}{
		"not sorted":        {[]Arrival{{2 * sec, "a", 0}, {1 * sec, "a", 0}}, "arrival 1"},
		"before the start":  {[]Arrival{{-1, "a", 0}}, "before its predecessor or the start"},
		"after the end":     {[]Arrival{{11 * sec, "a", 0}}, "after the trace's length of 10s"},
		"negative duration": {[]Arrival{{0, "a", -1}}, "negative duration"},
		"no function":       {[]Arrival{{0, "", 0}}, "names no function"},
		"sound":             {[]Arrival{{0, "a", 0}, {0, "b", 1}, {10 * sec, "a", 1}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Trace{Name: "t", Length: 10 * sec, Arrivals: tt.arrivals}.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Validate() = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestLoadOfATraceWithKnownOverlaps(t *testing.T) {
	trace := Trace{Length: 10 * sec, Arrivals: []Arrival{
		{0, "a", 4 * sec},
		{1 * sec, "b", 1 * sec},
		{2 * sec, "b", 1 * sec}, // begins when its predecessor ends
		{2500 * ms, "c", 500 * ms},
		{9 * sec, "a", 500 * ms},
	}}
	want := Load{Calls: 5, Functions: 3, Work: 7 * sec, Cores: 0.7, Peak: 3}
	if diff := cmp.Diff(want, trace.Load()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Load{}, Trace{}.Load()); diff != "" {
		t.Errorf("empty trace: %s", diff)
	}
}

func TestQuantileIsTheNearestRank(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, tt := range []struct {
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		{nil, .5, 0},
		{hundred[:1], .01, 1}, {hundred[:1], 1, 1},
		{hundred[:2], .5, 1}, {hundred[:2], .51, 2},
		{hundred, 0, 1}, {hundred, .07, 7}, {hundred, .5, 50}, {hundred, .95, 95}, {hundred, .99, 99}, {hundred, 1, 100},
	} {
		if got := Quantile(tt.sorted, tt.q); got != tt.want {
			t.Errorf("Quantile of %d elements at %v = %d, want %d", len(tt.sorted), tt.q, got, tt.want)
		}
	}
}

func TestDescribeTellsSizeLoadDurationsAndNotes(t *testing.T) {
	trace := Trace{Name: "t", Length: 2 * sec, Arrivals: []Arrival{{0, "a", 1 * sec}, {0, "b", 3 * sec}}, Notes: []string{"made up"}}
	want := []string{
		"trace t: 2 calls of 2 functions in 2s",
		"offered load: 2.00 CPU-seconds per second, at most 2 calls at a time",
		"durations: p50 1s, p90 3s, p99 3s, longest 3s",
		"made up",
	}
	if diff := cmp.Diff(want, trace.Describe()); diff != "" {
		t.Error(diff)
	}
}
